//! A server's whole life: start, use, restart, and all the ways it ends.
//!
//! Steps that need their own process (to be killed, with another environment or as another user) run
//! [`child`] in this binary, selected by a variable.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use postgres::{Client, NoTls};
use sawmill_localpg::{Binaries, LocalPg, sweep_abandoned_in};

/// Selects what [`child`] does.
const ROLE: &str = "SAWMILL_LOCALPG_TEST_ROLE";

fn connect(url: &str) -> Client {
    Client::connect(url, NoTls).unwrap()
}

fn one_number(client: &mut Client, query: &str) -> i64 {
    client.query_one(query, &[]).unwrap().get(0)
}

fn setting(client: &mut Client, name: &str) -> String {
    client.query_one("select current_setting($1)", &[&name]).unwrap().get(0)
}

/// A directory that everyone may enter, because root's server runs as another account. Each test has its own.
fn shared_directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    directory
}

fn server_in(directory: &tempfile::TempDir) -> LocalPg {
    LocalPg::builder().parent_dir(directory.path()).start().unwrap()
}

/// Processes that work below the directory or have it on their command line.
fn processes_in(directory: &Path) -> Vec<String> {
    let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    let named = |command_line: &str| command_line.contains(&*directory.to_string_lossy());
    if cfg!(target_os = "linux") {
        let works_there =
            |p: &Path| fs::read_link(p.join("cwd")).is_ok_and(|working| working.starts_with(&directory));
        let command_line = |p: &Path| fs::read_to_string(p.join("cmdline")).unwrap_or_default();
        let entries = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
        let processes = entries.map(|p| (works_there(&p), command_line(&p)));
        processes.filter(|(works, line)| *works || named(line)).map(|(_, line)| line).collect()
    } else {
        let listing = Command::new("ps").args(["-A", "-o", "args="]).output().unwrap();
        let listing = String::from_utf8_lossy(&listing.stdout).into_owned();
        listing.lines().filter(|line| named(line)).map(str::to_owned).collect()
    }
}

fn is_empty(directory: &Path) -> bool {
    fs::read_dir(directory).unwrap().next().is_none()
}

fn is_root() -> bool {
    fs::metadata(tempfile::tempdir().unwrap().path()).unwrap().uid() == 0
}

/// A command that runs [`child`] of this binary in a role.
fn child_command(program: &Path, role: &str) -> Command {
    let mut command = Command::new(program);
    command
        .args(["--exact", "child", "--nocapture"])
        .env(ROLE, role)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn this_program() -> PathBuf {
    std::env::current_exe().unwrap()
}

/// The roles of these tests' child processes; does nothing when run as a test itself.
#[test]
fn child() {
    let parent_dir = || std::env::var("SAWMILL_LOCALPG_TEST_DIR").unwrap();
    match std::env::var(ROLE).as_deref() {
        Ok("hold a server") => {
            let server = LocalPg::builder().parent_dir(parent_dir()).start().unwrap();
            println!("\nready {}", server.url());
            std::thread::sleep(Duration::from_secs(600));
        }
        Ok("keep a server") => {
            let kept = LocalPg::builder().parent_dir(parent_dir()).start().unwrap().keep().unwrap();
            println!("\nready {}\nstop {}", kept.url, kept.stop_command);
        }
        Ok("use a server") => {
            let server = LocalPg::start().unwrap();
            assert_eq!(one_number(&mut connect(&server.url()), "select 42::int8"), 42);
            assert_eq!(one_number(&mut connect(&server.socket_url()), "select 43::int8"), 43);
            println!("\nready as user {}", fs::metadata(server.data_dir()).unwrap().uid());
            server.stop().unwrap();
        }
        Ok("find binaries") => match Binaries::find() {
            Ok(found) => println!("\nfound {found:?}"),
            Err(error) => println!("\nerror {error}"),
        },
        _ => {}
    }
}

#[test]
fn a_server_answers_over_tcp_and_over_its_socket() {
    let server = LocalPg::start().unwrap();
    let mut tcp = connect(&server.url());
    tcp.batch_execute("create table t (x int8); insert into t select generate_series(1, 1000)").unwrap();
    let mut socket = connect(&server.socket_url());
    assert_eq!(one_number(&mut socket, "select sum(x)::int8 from t"), 500_500);
    assert_eq!(setting(&mut tcp, "data_directory"), server.data_dir().to_str().unwrap());
    assert!(setting(&mut tcp, "server_version").starts_with(server.binaries().version()));
    let on_tcp = "select (inet_server_addr() = '127.0.0.1' and inet_server_port() = $1)";
    assert!(tcp.query_one(on_tcp, &[&i32::from(server.port())]).unwrap().get::<_, bool>(0));
    server.stop().unwrap();
}

#[test]
fn a_server_is_the_same_on_every_machine() {
    let server = LocalPg::builder().setting("work_mem", "7MB").setting("x.y", r"it's a \").start().unwrap();
    let mut client = connect(&server.url());
    for (name, value) in [
        ("server_encoding", "UTF8"),
        ("TimeZone", "UTC"),
        ("lc_messages", "C"),
        ("fsync", "off"),
        ("synchronous_commit", "on"),
        ("listen_addresses", "127.0.0.1"),
        ("work_mem", "7MB"),
        ("x.y", r"it's a \"),
    ] {
        assert_eq!(setting(&mut client, name), value, "{name}");
    }
}

#[test]
fn directory_and_addresses_are_private() {
    let parent = shared_directory();
    let server = server_in(&parent);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(server.socket_dir()), 0o700);
    assert_eq!(mode(server.data_dir()), 0o700);
    assert!(server.data_dir().canonicalize().unwrap().starts_with(parent.path().canonicalize().unwrap()));
    let password = server.url().split(['@', ':']).nth(2).unwrap().to_owned();
    for url in [server.url(), server.socket_url()] {
        for guess in ["", "postgres", "sawmill"] {
            assert!(Client::connect(&url.replace(&password, guess), NoTls).is_err(), "{url} {guess}");
        }
    }
    let log = fs::read_to_string(server.log_file()).unwrap();
    assert!(!log.contains(&password));
    assert_ne!(fs::metadata(server.data_dir()).unwrap().uid(), 0, "the server does not run as root");
}

#[test]
fn stop_leaves_no_process_and_no_directory() {
    let parent = shared_directory();
    let server = server_in(&parent);
    // An open session must not delay the shutdown.
    let mut client = connect(&server.url());
    let (url, pid) = (server.url(), server.pid());
    assert!(!processes_in(parent.path()).is_empty());
    server.stop().unwrap();
    assert!(client.batch_execute("select 1").is_err());
    assert!(Client::connect(&url, NoTls).is_err());
    assert_eq!(processes_in(parent.path()), [""; 0]);
    assert!(is_empty(parent.path()));
    assert!(!Path::new(&format!("/proc/{pid}")).exists());
}

#[test]
fn a_panic_ends_the_server_and_removes_the_directory() {
    let parent = shared_directory();
    let directory = parent.path().to_owned();
    let outcome = catch_unwind(move || {
        let server = LocalPg::builder().parent_dir(&directory).start().unwrap();
        connect(&server.url()).batch_execute("create table t as select 1").unwrap();
        panic!("on purpose");
    });
    assert!(outcome.is_err());
    assert_eq!(processes_in(parent.path()), [""; 0]);
    assert!(is_empty(parent.path()));
}

#[test]
fn several_servers_start_at_the_same_time() {
    let servers: Vec<LocalPg> = std::thread::scope(|scope| {
        let starts: Vec<_> = (0..3).map(|_| scope.spawn(|| LocalPg::start().unwrap())).collect();
        starts.into_iter().map(|start| start.join().unwrap()).collect()
    });
    for (number, server) in (1i64..).zip(&servers) {
        let table = format!("create table t as select {number}::int8 as n");
        connect(&server.url()).batch_execute(&table).unwrap();
    }
    for (number, server) in (1i64..).zip(&servers) {
        assert_eq!(one_number(&mut connect(&server.socket_url()), "select n from t"), number);
    }
}

#[test]
fn committed_data_survives_a_crash_of_the_server() {
    let mut server = LocalPg::start().unwrap();
    let mut client = connect(&server.url());
    client.batch_execute("create table t as select generate_series(1, 100000) as n").unwrap();
    client.batch_execute("begin; insert into t values (0)").unwrap();
    let (url, pid) = (server.url(), server.pid());
    server.restart_immediate().unwrap();
    assert!(client.batch_execute("commit").is_err(), "the session is broken");
    assert_ne!(server.pid(), pid);
    assert_eq!(server.url(), url);
    assert_eq!(one_number(&mut connect(&url), "select count(*) from t"), 100_000);
    server.stop().unwrap();
}

#[test]
fn a_server_that_had_crashed_is_reported_by_stop_and_removed() {
    let parent = shared_directory();
    let server = server_in(&parent);
    let killed = Command::new("kill").args(["-KILL", &server.pid().to_string()]).status().unwrap();
    assert!(killed.success());
    // It is our child: until `stop` waits for it, it remains as a zombie.
    let state = format!("/proc/{}/stat", server.pid());
    while std::fs::read_to_string(&state).is_ok_and(|stat| !stat.contains(") Z ")) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let error = server.stop().unwrap_err();
    assert!(error.what().contains("ended by itself"), "{error}");
    assert_eq!(processes_in(parent.path()), [""; 0]);
    assert!(is_empty(parent.path()));
}

#[test]
fn a_failed_start_reports_the_reason_and_leaves_nothing() {
    let parent = shared_directory();
    let start = |builder: sawmill_localpg::Builder| builder.parent_dir(parent.path()).start().unwrap_err();
    let error = start(LocalPg::builder().setting("no_such_setting", "1"));
    assert!(error.what().contains("unrecognized configuration parameter \"no_such_setting\""), "{error}");
    let error = start(LocalPg::builder().setting("port", "1"));
    assert!(error.what().contains("cannot be changed"), "{error}");
    let error = start(LocalPg::builder().timeout(Duration::ZERO));
    assert!(error.what().contains("not ready after 0 s"), "{error}");
    assert_eq!(processes_in(parent.path()), [""; 0]);
    assert!(is_empty(parent.path()));
}

#[test]
fn a_missing_or_inaccessible_parent_directory_is_an_error() {
    let parent = shared_directory();
    let missing = parent.path().join("missing");
    let error = LocalPg::builder().parent_dir(&missing).start().unwrap_err();
    assert_eq!(error.place(), missing.display().to_string());
    if is_root() {
        let closed = parent.path().join("closed");
        fs::create_dir(&closed).unwrap();
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
        let error = LocalPg::builder().parent_dir(&closed).start().unwrap_err();
        assert!(error.what().contains("cannot enter"), "{error}");
        assert!(is_empty(&closed));
    }
}

#[test]
fn a_path_too_long_for_a_socket_puts_the_socket_elsewhere() {
    let parent = shared_directory();
    let deep = parent.path().join("d, \"".repeat(25));
    fs::create_dir(&deep).unwrap();
    let server = LocalPg::builder().parent_dir(&deep).start().unwrap();
    assert!(server.data_dir().starts_with(deep.canonicalize().unwrap()));
    assert_eq!(one_number(&mut connect(&server.socket_url()), "select 1::int8"), 1);
    let socket_dir = server.socket_dir().to_owned();
    assert!(!socket_dir.starts_with(parent.path()));
    server.stop().unwrap();
    assert!(!socket_dir.exists());
    assert!(is_empty(&deep));
}

#[test]
fn a_directory_with_odd_characters_works() {
    let parent = shared_directory();
    let odd = parent.path().join("a, \"b' c");
    fs::create_dir(&odd).unwrap();
    let server = LocalPg::builder().parent_dir(&odd).start().unwrap();
    assert!(server.socket_dir().starts_with(odd.canonicalize().unwrap()));
    assert_eq!(one_number(&mut connect(&server.socket_url()), "select 1::int8"), 1);
    server.stop().unwrap();
}

#[test]
fn a_killed_owner_leaves_nothing_after_the_next_start() {
    let parent = shared_directory();
    let mut command = child_command(&this_program(), "hold a server");
    let mut owner = command.env("SAWMILL_LOCALPG_TEST_DIR", parent.path()).spawn().unwrap();
    let lines = BufReader::new(owner.stdout.take().unwrap()).lines();
    let ready = lines.map_while(Result::ok).find_map(|line| line.strip_prefix("ready ").map(str::to_owned));
    let url = ready.unwrap();
    assert_eq!(one_number(&mut connect(&url), "select 1::int8"), 1);
    assert_eq!(sweep_abandoned_in(parent.path()).unwrap(), [], "a living owner's server is left alone");

    owner.kill().unwrap();
    owner.wait().unwrap();
    connect(&url);
    let next = server_in(&parent);
    assert!(Client::connect(&url, NoTls).is_err(), "the abandoned server is gone");
    assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 1, "only the next server's directory exists");
    next.stop().unwrap();
    assert_eq!(processes_in(parent.path()), [""; 0]);
}

#[test]
fn an_owner_killed_during_start_leaves_nothing_after_the_next_sweep() {
    let parent = shared_directory();
    for microseconds in [0, 50, 100, 200, 400, 800, 1_600, 3_200, 6_400, 25_000, 100_000, 400_000] {
        let mut command = child_command(&this_program(), "hold a server");
        let mut owner = command.env("SAWMILL_LOCALPG_TEST_DIR", parent.path()).spawn().unwrap();
        while is_empty(parent.path()) {
            std::hint::spin_loop();
        }
        std::thread::sleep(Duration::from_micros(microseconds));
        owner.kill().unwrap();
        owner.wait().unwrap();
        sweep_abandoned_in(parent.path()).unwrap();
        assert!(is_empty(parent.path()), "killed {microseconds} us after its first step");
    }
    assert_eq!(processes_in(parent.path()), [""; 0]);
}

#[test]
fn a_kept_server_outlives_its_owner_until_its_stop_command() {
    let parent = shared_directory();
    let mut command = child_command(&this_program(), "keep a server");
    let output = command.env("SAWMILL_LOCALPG_TEST_DIR", parent.path()).output().unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    let address = |what: &str| output.lines().find_map(|line| line.strip_prefix(what)).unwrap().trim();
    assert_eq!(sweep_abandoned_in(parent.path()).unwrap(), []);
    assert_eq!(one_number(&mut connect(address("ready")), "select 1::int8"), 1);
    let stopped = Command::new("sh").args(["-c", address("stop")]).status().unwrap();
    assert!(stopped.success());
    assert!(Client::connect(address("ready"), NoTls).is_err());
    assert_eq!(processes_in(parent.path()), [""; 0]);
    assert!(is_empty(parent.path()));
}

#[test]
fn a_wrong_sawmill_pg_bin_is_an_error_even_with_another_installation() {
    let mut command = child_command(&this_program(), "find binaries");
    let output = command.env("SAWMILL_PG_BIN", "/no/such/bin").output().unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    let error = output.lines().find_map(|line| line.strip_prefix("error ")).unwrap();
    assert!(error.contains("/no/such/bin") && error.contains("SAWMILL_PG_BIN"), "{error}");
}

#[test]
fn an_ordinary_user_starts_a_server_too() {
    if !is_root() {
        return; // The other tests ran as an ordinary user.
    }
    // PostgreSQL requires an account with a name.
    let id = Command::new("id").args(["-u", "nobody"]).output().unwrap();
    let user_id: u32 = String::from_utf8(id.stdout).unwrap().trim().parse().unwrap();
    // The binary may be in a folder that only root can enter.
    let place = shared_directory();
    let program = place.path().join("test");
    // Copied by another process: a file that this one wrote may be busy for a moment.
    assert!(Command::new("cp").arg(this_program()).arg(&program).status().unwrap().success());
    let temporary = place.path().join("tmp");
    fs::create_dir(&temporary).unwrap();
    fs::set_permissions(&temporary, fs::Permissions::from_mode(0o1777)).unwrap();
    let mut command = child_command(&program, "use a server");
    command
        .env("TMPDIR", &temporary)
        .env_remove("SAWMILL_PG_DIR")
        .env("HOME", &temporary)
        .current_dir("/")
        .gid(user_id)
        .uid(user_id);
    let started = Instant::now();
    let mut user = command.spawn().unwrap();
    let (mut out, mut err) = (String::new(), String::new());
    user.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    user.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert!(user.wait().unwrap().success(), "after {:?}: {out}{err}", started.elapsed());
    assert!(out.contains(&format!("ready as user {user_id}")), "{out}");
    assert!(is_empty(&temporary));
}
