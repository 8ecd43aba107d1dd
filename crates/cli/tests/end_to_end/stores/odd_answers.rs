//! Stores that answer oddly or with bad intent: redirects, lists without end, odd names, wrong clocks.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Instant;

use super::s3::{S3, environment};
use super::web::{Asked, Fate, Web};
use super::{served, with_s3};
use crate::harness::{Ran, command, sawmill, signal, until, wait};

const OBJECT: &str = "s3://trips/data/contacts-00000.parquet";

/// A list of these keys, with an end or without one.
macro_rules! list {
    ($token:literal, $($key:literal),*) => {
        concat!("<ListBucketResult>", $token, $("<Contents><Key>", $key, "</Key><Size>1</Size>\
            <LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>",)* "</ListBucketResult>")
    };
}

/// A store with contacts whose lists are these.
fn listing(list: &'static str) -> (tempfile::TempDir, Web) {
    let is_list = |asked: &Asked| asked.path.trim_end_matches('/') == "trips";
    served("10", move |asked, _| if is_list(asked) { Fate::Refused(200, list) } else { Fate::Answered })
}

#[test]
fn a_store_that_sends_requests_to_another_host_is_not_followed() {
    let (_there, other) = served("10", |_, _| Fate::Answered);
    let to = format!("http://{}/trips/data/contacts-00000.parquet", other.address);
    let (_here, web) = served("10", move |_, _| Fate::Moved(to.clone()));
    let error = with_s3(&web, &["footer", OBJECT]).fails(2);
    assert!(error.contains("another host, 127.0.0.1") && error.contains("--store region"), "{error}");
    assert!(other.asked().is_empty());
    // Files of the web may have moved.
    sawmill(["footer", &format!("http://{}/x.parquet", web.address)]).ok();
}

#[test]
fn a_list_that_does_not_end_is_an_error() {
    let endless = list!("<NextContinuationToken>again</NextContinuationToken>", "data/x.csv");
    let empty = list!("<NextContinuationToken>again</NextContinuationToken>",);
    for list in [endless, empty] {
        let (_folder, web) = listing(list);
        let error = with_s3(&web, &["footer", "s3://trips/data/"]).fails(1);
        assert!(error.contains("list of objects does not end"), "{error}");
        assert!(web.asked().len() < 10, "{}", web.asked().len());
    }
}

/// No address of a request is longer than 64 KiB.
#[test]
fn tokens_and_names_that_fit_into_no_request_are_errors() {
    let key = list!("<NextContinuationToken>TOKEN</NextContinuationToken>", "data/x.csv");
    let (_folder, web) = listing(key.replace("TOKEN", &"t".repeat(100_000)).leak());
    let error = with_s3(&web, &["footer", "s3://trips/data/"]).fails(1);
    assert!(error.contains("list of objects does not end") && !error.contains("panicked"), "{error}");
    let error = with_s3(&web, &["footer", &format!("s3://trips/{}", "n".repeat(100_000))]).fails(2);
    assert!(error.contains("more than 16384 bytes") && error.len() < 1000, "{error}");
}

/// A store that answers every request by this head, and then by bytes without end.
fn flooding(head: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            std::thread::spawn(move || -> std::io::Result<()> {
                // The client goes away.
                client.read_exact(&mut [0; 4])?;
                client.write_all(head.as_bytes())?;
                loop {
                    client.write_all(
                        &b"10000\r\n"
                            .iter()
                            .chain(&[b' '; 0x10000])
                            .chain(b"\r\n")
                            .copied()
                            .collect::<Vec<_>>(),
                    )?;
                }
            });
        }
    });
    address
}

#[test]
fn an_answer_that_claims_exabytes_or_does_not_end_is_an_error() {
    for head in [
        "HTTP/1.1 200 OK\r\nContent-Length: 9000000000000000000\r\n\r\n<",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 403 Forbidden\r\nTransfer-Encoding: chunked\r\n\r\n",
    ] {
        let address = flooding(head);
        for args in [["footer", "s3://trips/data/"], ["footer", OBJECT], ["footer", "delta:s3://trips/t"]] {
            let ran = Ran::from(environment(command(args), &address).output().unwrap());
            assert!(
                matches!(ran.code, Some(1 | 2)) && ran.err.contains("s3://trips/"),
                "{args:?}: {}",
                ran.err
            );
        }
    }
}

#[test]
fn an_odd_name_hides_no_other_object_and_is_an_error_only_if_it_is_wanted() {
    let (_folder, web) =
        listing(list!("", "data//junk.log", "data/../up.txt", "data/contacts-00000.parquet"));
    for wanted in ["s3://trips/data/", "s3://trips/data/*.parquet"] {
        let json = with_s3(&web, &["footer", wanted, "--json"]).ok().json();
        assert_eq!(json["files"].as_array().unwrap().len(), 1, "{json}");
    }
    let (_folder, web) = listing(list!("", "data//x.parquet", "data/contacts-00000.parquet"));
    let error = with_s3(&web, &["footer", "s3://trips/data/"]).fails(2);
    assert!(error.contains("s3://trips/data//x.parquet") && error.contains("empty parts"), "{error}");
    with_s3(&web, &["footer", "s3://trips/data/cont*"]).ok();
}

#[test]
fn a_wrong_clock_another_region_and_a_request_that_is_not_understood_have_errors_of_their_own() {
    let code =
        |code| format!("<Error><Code>{code}</Code><Message>m</Message></Error>").leak() as &'static str;
    for (status, name, why) in [
        (403, "RequestTimeTooSkewed", "the clock of this machine"),
        (400, "AuthorizationHeaderMalformed", "in another region"),
        (301, "PermanentRedirect", "in another region"),
        (400, "InvalidArgument", "does not understand the request (400 InvalidArgument: m)"),
    ] {
        let (_folder, web) = served("10", move |_, _| Fate::Refused(status, code(name)));
        let ran = with_s3(&web, &["footer", OBJECT]);
        assert!(ran.code != Some(0) && ran.err.contains(why), "{name}: {}", ran.err);
        assert!(web.asked().len() < 3, "it is not asked again: {}", web.asked().len());
    }
}

#[test]
fn a_transfer_that_ends_early_again_and_again_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let lines: String = (0..20_000).map(|id| format!("{id},name of {id}\n")).collect();
    std::fs::write(folder.path().join("x.csv"), format!("id,name\n{lines}")).unwrap();
    let web = Web::serve(folder.path(), |_, before| match before {
        1 => Fate::CutAfter(100_000),
        2 => Fate::CutAfter(200_000),
        _ => Fate::Answered,
    });
    let url = format!("http://{}/x.csv", web.address);
    let out = sawmill(["convert", &url, "--as", "csv", "--out", "-"]).ok().out;
    assert!(out == format!("id,name\n{lines}"), "{} bytes", out.len());
}

#[test]
fn the_log_of_a_table_in_a_store_names_no_file_outside_of_its_bucket() {
    let Some(s3) = S3::empty("data") else { return };
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret.parquet");
    sawmill(["gen", "contacts", "--rows", "10", "--out", secret.to_str().unwrap()]).ok();
    s3.sawmill(&["gen", "contacts", "--rows", "10", "--table-format", "delta", "--out", "s3://data/t"]).ok();
    let log = "t/_delta_log/00000000000000000000.json";
    let text = String::from_utf8(s3.object("data", log).unwrap()).unwrap();
    let start = text.find("\"path\":\"").unwrap() + 8;
    let end = start + text[start..].find('"').unwrap();
    for elsewhere in [secret.to_str().unwrap(), "s3://other/x.parquet", "file:///etc/passwd", "../../../x"] {
        s3.put("data", log, format!("{}{elsewhere}{}", &text[..start], &text[end..]).as_bytes());
        let ran = s3.sawmill(&["footer", "delta:s3://data/t"]);
        assert!(ran.code != Some(0) && !ran.out.contains("contacts"), "{elsewhere}: {}", ran.out);
        assert!(ran.err.contains("outside of s3://data/") || elsewhere.starts_with(".."), "{}", ran.err);
    }
    // Where it is wanted, an option says so.
    s3.put("data", log, format!("{}{}{}", &text[..start], secret.display(), &text[end..]).as_bytes());
    let confine = folder.path().to_str().unwrap();
    s3.sawmill(&["footer", "delta:s3://data/t", "--confine", confine]).ok();
}

/// A store that takes requests, and leaves all of them or those with rows without an answer. It counts these.
fn silent(all: bool) -> (String, Arc<AtomicU32>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let unanswered = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&unanswered);
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let counted = Arc::clone(&counted);
            std::thread::spawn(move || -> std::io::Result<()> {
                let mut request = vec![0; 1 << 16];
                loop {
                    let length = client.read(&mut request)?;
                    if length == 0 {
                        return Ok(());
                    }
                    let line = String::from_utf8_lossy(&request[..length]);
                    let answer = match line.split(' ').take(2).collect::<Vec<_>>()[..] {
                        _ if all => "",
                        ["GET", list] if list.contains("uploads") => "200 OK|<ListMultipartUploadsResult/>",
                        ["GET", list] if list.contains('?') => "200 OK|<ListBucketResult/>",
                        ["GET" | "HEAD", _] => "404 Not Found|",
                        ["PUT", mark] if mark.contains("_sawmill") => "200 OK|",
                        _ => "",
                    };
                    let Some((status, body)) = answer.split_once('|') else {
                        counted.fetch_add(1, Relaxed);
                        continue;
                    };
                    let length = body.len();
                    let head =
                        format!("HTTP/1.1 {status}\r\nETag: \"e\"\r\nContent-Length: {length}\r\n\r\n");
                    client.write_all((head + body).as_bytes())?;
                }
            });
        }
    });
    (address, unanswered)
}

#[test]
fn a_store_that_takes_requests_and_answers_none_holds_no_interrupted_command() {
    for all in [true, false] {
        let (address, unanswered) = silent(all);
        for args in [
            &["gen", "contacts", "--rows", "100k", "--files", "8", "--out", "s3://trips/data"][..],
            &["convert", "gen:contacts", "--rows", "1k", "--out", "s3://trips/rows.parquet"],
            &["footer", "s3://trips/data/x.parquet"],
        ] {
            let mut waiting = environment(command(args), &address);
            let before = unanswered.load(Relaxed);
            let mut child = waiting.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            let ended = !all && args[0] == "footer";
            // The store holds a request, or has answered that the object does not exist.
            until("requests", || match ended {
                true => child.try_wait().unwrap().is_some(),
                false => unanswered.load(Relaxed) > before,
            });
            if !ended {
                signal(&child, "TERM");
            }
            let (asked, ran) = (Instant::now(), wait(child));
            assert!(asked.elapsed().as_secs_f64() < 4.0, "{args:?}: {:?}", asked.elapsed());
            assert_eq!(ran.code, Some(if ended { 1 } else { 130 }), "{args:?}: {}", ran.err);
        }
    }
}
