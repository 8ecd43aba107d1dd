//! Errors as a server reports them
//! (<https://www.postgresql.org/docs/current/protocol-error-fields.html>).

/// An error that the server reported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerReport {
    /// The SQLSTATE: five characters.
    pub code: String,
    /// The message.
    pub message: String,
    /// More about it, if the server says more.
    pub detail: String,
    /// The server's advice.
    pub hint: String,
    /// The session has ended.
    pub fatal: bool,
}

impl ServerReport {
    /// Reads the body of an error.
    pub fn new(body: &[u8]) -> Self {
        let mut report = Self::default();
        for field in body.split(|byte| *byte == 0).filter(|field| !field.is_empty()) {
            let (kind, text) = field.split_at(1);
            let text = String::from_utf8_lossy(text);
            match kind {
                b"C" => report.code = text.into_owned(),
                b"M" => report.message = text.into_owned(),
                b"D" => report.detail = text.into_owned(),
                b"H" => report.hint = text.into_owned(),
                b"V" => report.fatal = text == "FATAL" || text == "PANIC",
                _ => {}
            }
        }
        report
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_server_has_its_code_and_whether_the_session_has_ended() {
        let report = ServerReport::new(b"SFATAL\0VFATAL\0C57P01\0Mterminating\0\0");
        assert_eq!((report.code.as_str(), report.message.as_str()), ("57P01", "terminating"));
        assert!(report.fatal && !ServerReport::new(b"VERROR\0C23505\0Mduplicate\0\0").fatal);
        assert_eq!(ServerReport::new(b"").code, "");
    }
}
