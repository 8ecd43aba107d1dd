//! Describes the machine on which a result was measured, without requiring anything to be installed.

use std::path::Path;

use serde::{Deserialize, Serialize};

/// What a result depends on besides the code. A text is empty if the system does not report it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's model.
    pub cpu: String,
    /// The number of processors available to this process.
    pub processors: u64,
    /// Memory in bytes.
    pub memory: Option<u64>,
    /// The operating system and its release.
    pub system: String,
    /// The kernel's name and release.
    pub kernel: String,
    /// The virtual machine or container that it detectably runs in, if any.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub virtualisation: String,
    /// The frequency governor of the processors, if any.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub governor: String,
    /// The compiler that built this program.
    pub rustc: String,
    /// The build target and profile (release or debug).
    pub build: String,
}

/// The filesystem that contains a path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filesystem {
    /// The path.
    pub path: String,
    /// Where the filesystem is mounted.
    pub mounted_at: String,
    /// Its type: ext4, tmpfs, ...
    pub kind: String,
    /// The mounted device.
    pub device: String,
}

impl Machine {
    /// This machine.
    pub fn this() -> Self {
        Self {
            cpu: cpu_model(),
            processors: std::thread::available_parallelism().map_or(1, |count| count.get() as u64),
            memory: memory(),
            system: system(),
            kernel: kernel(),
            virtualisation: virtualisation(),
            governor: text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            rustc: env!("SAWMILL_RUSTC").to_owned(),
            build: format!("{} {}", env!("SAWMILL_TARGET"), env!("SAWMILL_PROFILE")),
        }
    }
}

impl std::fmt::Display for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let memory = self.memory.map(crate::format_bytes).unwrap_or_default();
        let processors = format!("{} processors", self.processors);
        let parts = [&self.cpu, &processors, &memory, &self.system, &self.kernel, &self.rustc, &self.build];
        let known: Vec<&str> =
            parts.into_iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
        f.write_str(&known.join(", "))
    }
}

impl Filesystem {
    /// The filesystem of a path, which must exist; `None` if the system does not report it
    /// (`/proc/self/mountinfo`, `proc(5)`).
    pub fn new(path: &Path) -> Option<Self> {
        let full = path.canonicalize().ok()?;
        let table = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
        let mounts = table.lines().filter_map(mount).filter(|(at, ..)| full.starts_with(at));
        // The longest mount point that contains the path; if several are equal, the last one mounted.
        let (mounted_at, kind, device) = mounts.max_by_key(|(at, ..)| at.len())?;
        Some(Self { path: path.display().to_string(), mounted_at, kind, device })
    }
}

/// The mount point, type and device in a line of `mountinfo`.
fn mount(line: &str) -> Option<(String, String, String)> {
    let (before, after) = line.split_once(" - ")?;
    let mounted_at = before.split(' ').nth(4)?;
    let mut fields = after.split(' ');
    let (kind, device) = (fields.next()?, fields.next()?);
    // Blanks in names are written as octal escapes.
    let plain = |text: &str| text.replace("\\040", " ");
    Some((plain(mounted_at), kind.to_owned(), plain(device)))
}

/// A small file as trimmed text; empty if the file does not exist.
fn text(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

/// The value after `key` and a separator in the lines of a text.
fn value<'a>(text: &'a str, key: &str, separator: char) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(separator)?;
        (name.trim() == key).then(|| value.trim().trim_matches('"'))
    })
}

fn cpu_model() -> String {
    let table = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = ["model name", "Model", "Hardware", "cpu"].iter().find_map(|key| value(&table, key, ':'));
    model.map(str::to_owned).or_else(|| sysctl("machdep.cpu.brand_string")).unwrap_or_default()
}

fn memory() -> Option<u64> {
    let table = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    match value(&table, "MemTotal", ':') {
        Some(total) => total.strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024),
        None => sysctl("hw.memsize")?.parse().ok(),
    }
}

fn system() -> String {
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = value(&release, "PRETTY_NAME", '=').map(str::to_owned);
    let product = || sysctl("kern.osproductversion").map(|version| format!("macOS {version}"));
    name.or_else(product).unwrap_or_else(|| std::env::consts::OS.to_owned())
}

fn virtualisation() -> String {
    if Path::new("/.dockerenv").exists() || Path::new("/run/.containerenv").exists() {
        return "container".to_owned();
    }
    let flags = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = value(&flags, "flags", ':').unwrap_or_default();
    let virtual_machine = flags.split(' ').any(|flag| flag == "hypervisor");
    if virtual_machine { "virtual machine".to_owned() } else { String::new() }
}

fn kernel() -> String {
    // SAFETY: an all-zero utsname is a valid value, and uname fills it through a valid pointer.
    let (answer, name) = unsafe {
        let mut name: libc::utsname = std::mem::zeroed();
        (libc::uname(&mut name), name)
    };
    if answer != 0 {
        return String::new();
    }
    let field = |bytes: &[libc::c_char]| -> String {
        bytes.iter().take_while(|byte| **byte != 0).map(|byte| *byte as u8 as char).collect()
    };
    format!("{} {} {}", field(&name.sysname), field(&name.release), field(&name.machine))
}

/// A value that macOS reports.
#[cfg(target_os = "macos")]
fn sysctl(name: &str) -> Option<String> {
    let output = std::process::Command::new("/usr/sbin/sysctl").args(["-n", name]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (!text.is_empty()).then_some(text)
}

#[cfg(not(target_os = "macos"))]
fn sysctl(_: &str) -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn this_machine_is_described_and_survives_json() {
        let machine = Machine::this();
        assert!(machine.processors >= 1 && machine.memory.unwrap() > 1 << 26);
        assert!(machine.kernel.starts_with("Linux ") && machine.rustc.starts_with("rustc "));
        let text = serde_json::to_string(&machine).unwrap();
        assert_eq!(serde_json::from_str::<Machine>(&text).unwrap(), machine);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_filesystem_of_a_path_is_that_of_its_nearest_mount() {
        assert_eq!(Filesystem::new(Path::new("/proc/self")).unwrap().kind, "proc");
        assert_eq!(Filesystem::new(Path::new("/no/such/path")), None);
        let line = "36 35 98:0 /mnt1 /mnt\\0402 rw shared:1 - ext3 /dev/root rw,errors=continue";
        assert_eq!(mount(line).unwrap(), ("/mnt 2".into(), "ext3".into(), "/dev/root".into()));
    }
}
