//! Arrivals out of a file: one moment a line, in seconds from the start, and perhaps the name of the operation.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use sawmill_source::{Error, Kind, Result};

/// A trace that is read line by line, so that it may be of any length.
#[derive(Debug)]
pub(crate) struct Trace {
    lines: BufReader<File>,
    path: PathBuf,
    line: u64,
    last: f64,
    names: Vec<String>,
    /// Moments that were read.
    count: u64,
    /// The number of this process, and how many there are: moment `m` belongs to process `m % n`.
    part: (u64, u64),
}

/// A moment in seconds, and the operation if the line names one.
pub(crate) type Moment = (f64, Option<usize>);

impl Trace {
    /// Opens a trace for the operations `names`, and returns its last moment. Reads all its lines once, so that a
    /// wrong line is reported before the run.
    pub(crate) fn open(path: &Path, names: &[String], part: (u64, u64)) -> Result<(Self, f64)> {
        let mut checked = Self::at_start(path, names, part)?;
        while checked.moment()?.is_some() {}
        if checked.count == 0 {
            return Err(Error::new(Kind::Config, "the trace has no lines")
                .at(path.display().to_string())
                .advise("write one moment a line, in seconds from the start"));
        }
        Ok((Self::at_start(path, names, part)?, checked.last))
    }

    fn at_start(path: &Path, names: &[String], part: (u64, u64)) -> Result<Self> {
        let file = sawmill_profile::open_regular(path).map_err(|error| {
            Error::new(Kind::Config, format!("cannot read the trace: {error}"))
                .at(path.display().to_string())
                .advise("give a file with one moment a line, in seconds from the start")
        })?;
        let lines = BufReader::new(file);
        Ok(Self { lines, path: path.to_owned(), line: 0, last: 0.0, names: names.to_vec(), count: 0, part })
    }

    /// The next moment of this process.
    pub(crate) fn next(&mut self) -> Result<Option<Moment>> {
        loop {
            let moment = self.moment()?;
            if moment.is_none() || (self.count - 1) % self.part.1 == self.part.0 - 1 {
                return Ok(moment);
            }
        }
    }

    /// The next moment of the file.
    fn moment(&mut self) -> Result<Option<Moment>> {
        let mut text = String::new();
        loop {
            text.clear();
            let read = self.lines.read_line(&mut text);
            self.line += 1;
            match read {
                Ok(0) => return Ok(None),
                Ok(_) if text.trim().is_empty() || text.trim_start().starts_with('#') => {}
                Ok(_) => break,
                Err(error) => return Err(self.refused(format!("cannot be read: {error}"))),
            }
        }
        let (moment, name) = match text.trim().split_once([',', '\t', ' ']) {
            Some((moment, name)) => (moment, name.trim()),
            None => (text.trim(), ""),
        };
        let value = moment.trim().parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0);
        let Some(value) = value else {
            return Err(self.refused(format!("{moment:?} is not a number of seconds")));
        };
        if value < self.last {
            return Err(self.refused(format!("{value} comes after {}, which is later", self.last)));
        }
        (self.last, self.count) = (value, self.count + 1);
        if name.is_empty() {
            return Ok(Some((value, None)));
        }
        match self.names.iter().position(|known| known == name) {
            Some(operation) => Ok(Some((value, Some(operation)))),
            None => {
                Err(self
                    .refused(format!("{name:?} is not an operation of the plan: {}", self.names.join(", "))))
            }
        }
    }

    fn refused(&self, what: String) -> Error {
        Error::new(Kind::Config, what)
            .at(format!("{}, line {}", self.path.display(), self.line))
            .advise("write `SECONDS` or `SECONDS,OPERATION` on each line, in the order of time")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_run_share_the_moments_of_a_trace() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("times.csv");
        std::fs::write(&path, "# seconds\n0.1\n0.2,insert\n0.3\n\n0.4\n0.5\n").unwrap();
        let names = ["insert".to_owned()];
        let moments = |part| {
            let (mut trace, end) = Trace::open(&path, &names, part).unwrap();
            assert_eq!(end, 0.5);
            std::iter::from_fn(|| trace.next().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(moments((1, 1)).len(), 5);
        assert_eq!(moments((1, 2)), [(0.1, None), (0.3, None), (0.5, None)]);
        assert_eq!(moments((2, 2)), [(0.2, Some(0)), (0.4, None)]);
    }
}
