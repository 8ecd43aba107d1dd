//! Which options of a group the command line gives, also where a value equals the default.

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, FromArgMatches};

/// The options that the command line gives. The first field of a struct that asks: parsing takes the others away.
#[derive(Clone, Debug, Default)]
pub(crate) struct Given(Vec<String>);

impl Given {
    /// The given options of `A`, with their dashes, in the order of its help.
    pub(crate) fn all_of<A: Args>(&self) -> Vec<String> {
        let options = A::augment_args(Command::new(""));
        let given =
            options.get_arguments().filter(|option| self.0.iter().any(|id| option.get_id().as_str() == id));
        given.filter_map(|option| option.get_long()).map(|long| format!("--{long}")).collect()
    }

    /// The first given option of `A`, without `others`.
    pub(crate) fn first_of<A: Args>(&self, others: &[&str]) -> Option<String> {
        self.all_of::<A>().into_iter().find(|option| !others.contains(&option.as_str()))
    }
}

impl FromArgMatches for Given {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let is_given = |id: &&clap::Id| matches.value_source(id.as_str()) == Some(ValueSource::CommandLine);
        Ok(Self(matches.ids().filter(is_given).map(ToString::to_string).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        Self::from_arg_matches(matches).map(|given| *self = given)
    }
}

/// It adds no option.
impl Args for Given {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}
