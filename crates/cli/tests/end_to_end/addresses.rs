//! Which server and which schema are meant: services, the environment, `--checkpoint-schema`.

use std::process::Command;

use crate::harness::{Ran, command, sawmill};
use crate::load::Bench;

/// Runs with an environment that knows nothing of servers but this.
fn with(command: &mut Command, variables: &[(&str, &str)]) -> Ran {
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("PG")) {
        command.env_remove(name);
    }
    Ran::from(command.envs(variables.iter().copied()).output().unwrap())
}

#[test]
fn a_server_is_found_by_its_service_by_the_environment_and_by_its_socket() {
    let bench = Bench::new();
    let file = bench.contacts("100");
    let url = bench.server.url();
    let (login, place) = url.strip_prefix("postgres://").unwrap().split_once('@').unwrap();
    let (user, password) = login.split_once(':').unwrap();
    let (host, rest) = place.split_once(':').unwrap();
    let (port, database) = rest.split_once('/').unwrap();
    let services = bench.dir.path().join("services");
    std::fs::write(
        &services,
        format!(
            "[other]\nhost=nowhere\n\n[shop]\nhost={host}\nport={port}\nuser={user}\ndbname={database}\n"
        ),
    )
    .unwrap();
    let services = services.to_str().unwrap();
    let load = |table: &str, to: &str| {
        command(["load", file.to_str().unwrap(), "--quiet", "--to", to, "--table", table])
    };
    let named = [("PGSERVICEFILE", services), ("PGPASSWORD", password), ("PGPORT", "1")];
    with(&mut load("a", "service=shop"), &named).ok();
    with(&mut load("b", "postgres://"), &[named.as_slice(), &[("PGSERVICE", "shop")]].concat()).ok();
    // The first of several that answers.
    let environment = [
        ("PGHOST", "127.0.0.1,127.0.0.1"),
        ("PGPORT", &format!("1,{port}")),
        ("PGUSER", user),
        ("PGPASSWORD", password),
        ("PGDATABASE", database),
        ("PGAPPNAME", "nightly load"),
        ("PGTARGETSESSIONATTRS", "read-write"),
    ];
    with(&mut load("c", ""), &environment).ok();
    let socket = bench.server.socket_dir().to_str().unwrap().replace('/', "%2F");
    with(&mut load("d", &format!("postgres://{login}@{socket}:{port}/{database}")), &[]).ok();
    let socket = format!("postgres:///{database}?host={socket}&port={port}&user={user}&password={password}");
    with(&mut load("e", &socket), &[]).ok();
    for table in ["a", "b", "c", "d", "e"] {
        assert_eq!(bench.count(&format!("select count(*) from {table}")), 100);
    }
    let error = with(&mut load("f", "service=shpo"), &named).fails(2);
    assert!(error.contains("no service \"shpo\"") && error.contains(services), "{error}");
    let standby = format!("{url}?target_session_attrs=standby");
    let error = with(load("f", &standby).args(["--retries", "0"]), &[]).fails(1);
    assert!(error.contains("it is not a standby"), "{error}");
}

#[test]
fn load_status_and_forget_share_a_schema_for_their_records() {
    let bench = Bench::new();
    let file = bench.contacts("100");
    let records = ["--checkpoint-schema", "My records"];
    bench.load(&file, "t", &records).ok();
    assert_eq!(bench.count("select count(*) from \"My records\".loads"), 1);
    assert!(bench.load(&file, "t", &records).ok().out.contains("complete already"));
    bench.load(&file, "t", &[]).fails(1);
    let url = bench.server.url();
    let status = |more: &[&str]| sawmill([&["load", "status", "--to", &url], more].concat()).ok().out;
    assert!(status(&records).contains("public.t") && status(&[]).contains("no recorded loads"));
    let forget = ["load", "forget", "--to", &url, "--table", "t"];
    assert!(sawmill([forget.as_slice(), &records].concat()).ok().out.contains("forgot 1 load"));
    assert_eq!(bench.count("select count(*) from pg_namespace where nspname = 'My records'"), 0);
}
