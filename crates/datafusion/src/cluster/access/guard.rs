//! The token of a cluster, and the check that refuses calls without it.
//!
//! Ballista sets no header of the calls between executors, or of executors to the scheduler. It only sets the name
//! of the calling program for all connections, so a call presents its proof there. The proof is a code made with
//! the token, which stays in the process. Whoever reads a call can repeat its proof: TLS keeps calls unread.

use std::fmt::Write;
use std::path::Path;

use datafusion::error::Result;
use ring::hmac;
use tonic::service::Interceptor;
use tonic::{Request, Status};

use crate::error::refused;

/// A token that can be guessed protects nothing.
const MIN_CHARACTERS: usize = 16;

/// The text that is signed with the token to prove that the caller knows it.
const SIGNED: &[u8] = b"a call within a cluster of sawmill-cluster";

/// Begins the word of `user-agent` that has the proof.
const PROOF: &str = "token-proof/";

/// A token that the processes of a cluster share.
#[derive(Clone)]
pub(crate) struct Token(hmac::Key);

impl Token {
    /// Reads the token of a file, without the white space around it.
    ///
    /// # Errors
    /// The file cannot be read; the token is too short.
    pub(crate) fn read(file: &Path) -> Result<Self> {
        let place = file.display().to_string();
        let text = sawmill_store::read_small(file).map_err(|error| {
            refused(
                format!("the token cannot be read: {error}"),
                &place,
                "give --token-file a file that has one",
            )
        })?;
        let token = text.trim_ascii();
        if token.len() < MIN_CHARACTERS {
            let what = format!("the token has fewer than {MIN_CHARACTERS} characters");
            return Err(refused(what, &place, "make one, for example by: openssl rand -hex 32"));
        }
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, token)))
    }

    /// The name of this program as its calls give it, with the proof.
    pub(crate) fn user_agent(&self) -> String {
        format!("sawmill-cluster/{} {PROOF}{}", env!("CARGO_PKG_VERSION"), self.proof())
    }

    fn proof(&self) -> String {
        let mut proof = String::new();
        for byte in hmac::sign(&self.0, SIGNED).as_ref() {
            // A String takes all that is written to it.
            let _ = write!(proof, "{byte:02x}");
        }
        proof
    }

    /// Compares in constant time: codes of both proofs, which take the token to make.
    fn is_proved_by(&self, presented: &str) -> bool {
        let expected = hmac::sign(&self.0, self.proof().as_bytes());
        hmac::verify(&self.0, presented.as_bytes(), expected.as_ref()).is_ok()
    }
}

/// Refuses calls that do not present the token of this process, if it has one.
#[derive(Clone)]
pub(crate) struct Guard {
    token: Option<Token>,
}

impl Guard {
    pub(crate) fn new(token: Option<Token>) -> Self {
        Self { token }
    }
}

impl Interceptor for Guard {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        let Some(token) = &self.token else { return Ok(request) };
        let program = request.metadata().get("user-agent").and_then(|value| value.to_str().ok());
        let presented = program.unwrap_or_default().split(' ').find_map(|word| word.strip_prefix(PROOF));
        match presented {
            Some(proof) if token.is_proved_by(proof) => Ok(request),
            Some(_) => Err(Status::unauthenticated("the token is not that of the cluster")),
            None => Err(Status::unauthenticated("the call has no token")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(text: &str) -> Token {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        std::fs::write(&file, text).unwrap();
        Token::read(&file).unwrap_or_else(|error| panic!("{error}"))
    }

    fn call(guard: &Guard, user_agent: Option<&str>) -> Result<(), String> {
        let mut request = Request::new(());
        if let Some(user_agent) = user_agent {
            request.metadata_mut().insert("user-agent", user_agent.parse().unwrap());
        }
        guard.clone().call(request).map(drop).map_err(|status| status.message().to_owned())
    }

    #[test]
    fn a_call_needs_the_proof_of_the_token_and_the_token_is_not_in_it() {
        let text = "0123456789abcdef";
        let guard = Guard::new(Some(token(text)));
        let presented = token(&format!("{text}\n")).user_agent();
        assert!(!presented.contains(text), "{presented}");
        // The transport adds its own name.
        assert_eq!(call(&guard, Some(&format!("{presented} tonic/0.14.9"))), Ok(()));
        let other = token("0123456789abcdeF").user_agent();
        let wrong = Err("the token is not that of the cluster".to_owned());
        assert_eq!(call(&guard, Some(&other)), wrong);
        assert_eq!(call(&guard, Some(&format!("{presented}00"))), wrong);
        assert_eq!(call(&guard, Some(&presented[..presented.len() - 2])), wrong);
        let missing = Err("the call has no token".to_owned());
        assert_eq!(call(&guard, Some("tonic/0.14.9")), missing);
        assert_eq!(call(&guard, None), missing);
        assert_eq!(call(&Guard::new(None), None), Ok(()));
    }
}
