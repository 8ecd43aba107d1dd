//! Enumerations of the libraries as words of the command line.

/// Mirrors an enumeration of a library for clap. `as` names the library's variant if its name differs.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident => $target:ident {
        $($(#[$variant_meta:meta])* $variant:ident $(as $there:ident)?),+ $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
        pub(crate) enum $name { $($(#[$variant_meta])* $variant),+ }

        impl From<$name> for $target {
            fn from(word: $name) -> Self {
                match word { $($name::$variant => words!(@variant $target $variant $($there)?)),+ }
            }
        }
    };
    (@variant $target:ident $variant:ident) => { $target::$variant };
    (@variant $target:ident $variant:ident $there:ident) => { $target::$there };
}

pub(crate) use words;

/// An answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum YesNo {
    #[default]
    Yes,
    No,
}
