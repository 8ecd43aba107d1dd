//! The commands in `packaging/compose.yaml` and `packaging/kubernetes-job.yaml` do what the files say, with other
//! addresses and fewer rows.

use std::path::Path;
use std::process::{Command, Stdio};

use sawmill_cratedb_standin::StandIn;

use crate::harness::{Ran, command, sawmill, wait};
use crate::load::Bench;

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What a line of YAML such as `args: ["load", "finish"]` lists.
fn listed(line: &str, key: &str) -> Option<Vec<String>> {
    let list = line.trim_start().strip_prefix(key)?.strip_prefix(": ")?;
    Some(serde_json::from_str(list).unwrap_or_else(|error| panic!("{line}: {error}")))
}

/// The parameters of an address, as a service file has them.
fn parameters(url: &str) -> String {
    let (credentials, rest) = url.strip_prefix("postgres://").unwrap().split_once('@').unwrap();
    let (user, password) = credentials.split_once(':').unwrap();
    let (server, database) = rest.split_once('/').unwrap();
    let (host, port) = server.split_once(':').unwrap();
    format!("host={host}\nport={port}\ndbname={database}\nuser={user}\npassword={password}\n")
}

/// The services with commands of ours, in an order in which they may run.
fn services(compose: &str) -> Vec<(&str, Vec<String>)> {
    let mut found: Vec<(&str, Vec<String>)> = Vec::new();
    let mut name = "";
    for line in compose.lines() {
        if let Some(key) = line.strip_prefix("  ").and_then(|key| key.strip_suffix(':')) {
            name = if key.starts_with(' ') { name } else { key };
        }
        if let Some(arguments) = listed(line, "command").filter(|arguments| arguments[0] != "crate") {
            found.push((name, arguments));
        }
        if let Some((earlier, _)) = line.split_once(": {condition: service_completed_successfully}") {
            let earlier = earlier.trim_start();
            assert!(
                found.iter().any(|(name, _)| *name == earlier),
                "{name} waits for {earlier}, which is below it"
            );
        }
    }
    found
}

#[test]
fn the_services_of_the_compose_file_run_and_run_again() {
    let (bench, cratedb) = (Bench::new(), StandIn::start(1));
    let (postgres, cratedb) = (bench.server.url(), cratedb.url());
    let compose = read("compose.yaml");
    let services = services(&compose);
    let names: Vec<&str> = services.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["generate", "load", "load-cratedb", "verify", "verify-cratedb", "sawmill-demo"]);
    for _ in 0..2 {
        for (name, arguments) in &services {
            let arguments = arguments.iter().map(|argument| match argument.as_str() {
                "postgres://sawmill@postgres/demo" => postgres.clone(),
                "crate://cratedb:4200" => cratedb.clone(),
                "100k" => "2k".to_owned(),
                "10s" => "1s".to_owned(),
                other => other.replace("/data", bench.dir.path().to_str().unwrap()),
            });
            let ran = sawmill(arguments);
            // What a load test says of a machine that is busy with other tests is true.
            let busy = *name == "sawmill-demo" && ran.err.contains("the result is invalid: ");
            assert!(ran.code == Some(0) || busy, "{name}: {}{}", ran.out, ran.err);
        }
        assert_eq!(bench.count("select count(*) from contacts"), 2_000);
    }
}

#[test]
fn the_processes_of_the_kubernetes_job_load_each_row_once() {
    let bench = Bench::new();
    let url = bench.server.url();
    let service = bench.dir.path().join("pg_service.conf");
    std::fs::write(&service, format!("[database]\n{}", parameters(&url))).unwrap();
    let job = read("kubernetes-job.yaml");
    let mut arguments = job.lines().filter_map(|line| listed(line, "args"));
    let (load, finish) = (arguments.next().unwrap(), arguments.next().unwrap());
    let completions = job.lines().find_map(|line| line.trim().strip_prefix("completions: ")).unwrap();
    assert!(load.contains(&format!("auto/{completions}")), "{load:?}");
    let run = |arguments: &[String], index: u32| {
        let fewer = arguments.iter().map(|argument| argument.replace("rows=1B", "rows=8k"));
        let mut process = command(fewer);
        process.env("PGSERVICEFILE", &service).env("JOB_COMPLETION_INDEX", index.to_string());
        wait(process.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()).ok()
    };
    for index in 0..completions.parse().unwrap() {
        // A unit for each process.
        run(&[&load[..], &["--unit-rows", "1k"].map(str::to_owned)].concat(), index);
    }
    let finished = run(&finish, 0);
    assert!(finished.out.contains("8,000 rows") && finished.out.contains("verified"), "{}", finished.out);
    assert_eq!(bench.count("select count(*) from contacts"), 8_000);
}

#[test]
fn the_files_name_the_image_of_this_version() {
    for name in ["compose.yaml", "kubernetes-job.yaml"] {
        let file = read(name);
        let images = file.lines().filter_map(|line| line.trim_start().strip_prefix("image: "));
        let ours: Vec<&str> = images.filter(|image| image.contains("sawmill")).collect();
        let version = concat!("sawmill:", env!("CARGO_PKG_VERSION"));
        assert!(!ours.is_empty() && ours.iter().all(|image| image.ends_with(version)), "{name}: {ours:?}");
    }
}

/// Runs a line of a shell in a folder.
fn shell(folder: &Path, line: &str) -> Ran {
    Ran::from(Command::new("sh").args(["-c", line]).current_dir(folder).output().unwrap())
}

#[test]
fn the_installer_installs_an_archive_only_if_its_checksum_is_right() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    if shell(here, "command -v curl && uname -sm | grep -qE 'Linux (x86_64|aarch64)'").code != Some(0) {
        eprintln!("skipped: curl is missing, or this is not Linux");
        return;
    }
    std::fs::write(
        here.join("install.sh"),
        read("install.sh").replace("@version@", "1.2.3").replace("@repository@", "https://nowhere.invalid"),
    )
    .unwrap();
    let pack = "name=sawmill-v1.2.3-$(uname -m)-unknown-linux-gnu && mkdir -p $name/man $name/completions && \
                printf '#!/bin/sh\\n%s\\n' \"$CODE\" > $name/sawmill && chmod +x $name/sawmill && \
                touch $name/man/sawmill.1 $name/completions/sawmill.bash $name/completions/sawmill.zsh \
                $name/completions/sawmill.fish && tar -czf $name.tar.gz $name && \
                sha256sum $name.tar.gz > $name.tar.gz.sha256";
    shell(here, &format!("CODE='echo sawmill 1.2.3'; {pack}")).ok();
    let install = "HOME=$PWD/home sh install.sh --from file://$PWD";
    let said = shell(here, install).ok().out;
    assert!(said.contains("home/.local/bin/sawmill: sawmill 1.2.3"), "{said}");
    assert!(said.contains("add ") && said.contains(" to PATH"), "{said}");
    for file in ["man/man1/sawmill.1", "bash-completion/completions/sawmill", "zsh/site-functions/_sawmill"] {
        assert!(here.join("home/.local/share").join(file).exists(), "{file}");
    }
    let again = shell(here, &format!("PATH=$PWD/other/bin:$PATH; {install} --to $PWD/other")).ok().out;
    assert!(here.join("other/bin/sawmill").exists() && !again.contains("PATH"), "{again}");

    shell(here, &format!("CODE='exit 1'; {pack}")).ok();
    let refused = shell(here, install);
    assert!(refused.code == Some(1) && refused.err.contains("does not run"), "{}", refused.err);
    shell(here, "home/.local/bin/sawmill").ok();

    shell(here, "for archive in *.tar.gz; do echo x >> $archive; done").ok();
    let refused = shell(here, &format!("{install} --to $PWD/third"));
    assert!(refused.code == Some(1) && refused.err.contains("another checksum"), "{}", refused.err);
    assert!(!here.join("third").exists());
    assert_eq!(shell(here, "sh install.sh --help").code, Some(2));
}
