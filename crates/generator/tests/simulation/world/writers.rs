//! The commands of a run.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use sawmill_generator::{
    Dataset, Error, ErrorKind, Existing, Job, Layout, Output, StoreFolder, StoreOutput, write,
};
use sawmill_profile::Profile;
use sawmill_store::simulated::SimulatedStore;
use sawmill_store::{Location, Stores, UploadLimits, WholeFolder};

use super::World;
use super::audit::{FOLDERS, Whole};
use super::client::Client;
use super::draw::Draw;
use super::process::Process;

static DATASET: LazyLock<Dataset> = LazyLock::new(|| {
    let spec = "name = \"d\"\n[[fields]]\nname = \"n\"\ntype = \"int32\"\nvalues = { zipf = { n = 100, s = 1.1 } }\n";
    Dataset::from_toml(spec).expect("the spec is valid")
});

/// The key of the manifest.
pub const MANIFEST: &str = "data/_sawmill.d.json";

/// A run of `gen` or `convert`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Command {
    pub converts: bool,
    pub seed: u64,
    pub files: u32,
}

impl Command {
    pub fn drawn(draw: &mut Draw, converts: bool) -> Self {
        Self { converts, seed: draw.of(&[1, 1, 2]), files: draw.of(&[1, 2, 3]) }
    }

    /// What the command makes if nothing happens.
    pub fn whole(self) -> Whole {
        static KNOWN: Mutex<BTreeMap<Command, Whole>> = Mutex::new(BTreeMap::new());
        if let Some(whole) = KNOWN.lock().unwrap_or_else(PoisonError::into_inner).get(&self) {
            return Arc::clone(whole);
        }
        let world = World::new(Draw::new(0), 0, None, false);
        let process = Process::new(&world, Vec::new(), 0);
        let limits = UploadLimits { part: 1 << 20, requests: 1 };
        self.run(&process, limits, Existing::Refuse).expect("nothing happens to it");
        let state = world.state();
        let files = state.bucket.objects.iter().filter(|(key, _)| *key != MANIFEST);
        let whole: Whole =
            Arc::new(files.map(|(key, object)| (key.clone(), Arc::clone(&object.bytes))).collect());
        KNOWN.lock().unwrap_or_else(PoisonError::into_inner).insert(self, Arc::clone(&whole));
        whole
    }

    /// Runs the command.
    ///
    /// # Errors
    /// What the command ends with.
    pub fn run(self, process: &Arc<Process>, limits: UploadLimits, existing: Existing) -> Result<(), Error> {
        let of_process = Arc::clone(process);
        let client = move |create_only| {
            Arc::new(Client { process: Arc::clone(&of_process), create_only }) as Arc<dyn SimulatedStore>
        };
        let stores = Arc::new(Stores::simulated(Box::new(client), Arc::clone(&process.cancel))?);
        let folder = format!("s3://bucket/{}", FOLDERS[usize::from(self.converts)]);
        let Location::Object(url) = Location::new(Path::new(&folder))? else { unreachable!("it is a URL") };
        if self.converts {
            return self
                .convert(&stores.whole_folder(&url, limits, existing == Existing::Replace)?, existing);
        }
        let folder = StoreFolder::open(&stores, &url, limits, false)?;
        let output = Output::Store(StoreOutput { folder: Arc::new(folder), file: None });
        let layout = Layout::new(u64::from(self.files) * 4, self.files)?;
        let phase = Profile::new().phase("generate");
        let cancel = Arc::clone(&process.cancel);
        let job = Job { seed: self.seed, existing, ..Job::new(&layout, &output, &phase, &cancel) };
        write(&DATASET, &job).map(drop)
    }

    /// Sends files as `convert` does, one after the other.
    fn convert(self, folder: &WholeFolder, existing: Existing) -> Result<(), Error> {
        if !folder.there().is_empty() && !folder.is_marked() && existing != Existing::Replace {
            return Err(Error::new(ErrorKind::Spec, "the folder has objects", "out", "--overwrite"));
        }
        let is_ours = |name: &str| name.starts_with("part-");
        folder.begin(&is_ours)?;
        let mut sent = Vec::new();
        for number in 0..self.files {
            let (name, bytes) =
                (format!("part-{number:05}.parquet"), format!("{self:?} {number} ").repeat(10));
            let mut object = folder.create(&name)?;
            object.write(&[bytes.as_bytes()], 0)?;
            sent.push(folder.finish(&name, object)?);
        }
        folder.others(&sent, &is_ours)?.iter().try_for_each(|name| folder.remove(name))?;
        Ok(folder.end()?)
    }
}
