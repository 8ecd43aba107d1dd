//! Which of several servers will do: `target_session_attrs`, as libpq has it
//! (<https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNECT-TARGET-SESSION-ATTRS>).

use std::str::FromStr;

use sawmill_profile::{Error, Result};

use crate::address::parameters::refused;

/// The kind of server that a connection needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SessionKind {
    #[default]
    Any,
    ReadWrite,
    ReadOnly,
    Primary,
    Standby,
    /// A standby, and if there is none any server.
    PreferStandby,
}

impl FromStr for SessionKind {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Ok(match text {
            "any" => Self::Any,
            "read-write" => Self::ReadWrite,
            "read-only" => Self::ReadOnly,
            "primary" => Self::Primary,
            "standby" => Self::Standby,
            "prefer-standby" => Self::PreferStandby,
            other => {
                let advice = "give any, read-write, read-only, primary, standby or prefer-standby";
                return Err(refused(format!("target_session_attrs={other} is unknown")).advise(advice));
            }
        })
    }
}

impl SessionKind {
    /// The kinds to look for, one after the other: each round asks all servers.
    pub(crate) fn rounds(self) -> &'static [Self] {
        match self {
            Self::Any => &[Self::Any],
            Self::ReadWrite => &[Self::ReadWrite],
            Self::ReadOnly => &[Self::ReadOnly],
            Self::Primary => &[Self::Primary],
            Self::Standby => &[Self::Standby],
            Self::PreferStandby => &[Self::Standby, Self::Any],
        }
    }

    /// The objection to a server that is a standby or not, whose transactions can write or not.
    pub(crate) fn objection(self, standby: bool, read_only: bool) -> Option<&'static str> {
        match self {
            Self::ReadWrite if read_only => {
                Some("its transactions cannot write, and target_session_attrs=read-write")
            }
            Self::ReadOnly if !read_only => {
                Some("its transactions can write, and target_session_attrs=read-only")
            }
            Self::Primary if standby => Some("it is a standby, and target_session_attrs=primary"),
            Self::Standby if !standby => Some("it is not a standby, and target_session_attrs=standby"),
            _ => None,
        }
    }
}
