//! Commands of a role that may have one connection.

use crate::harness::sawmill;
use crate::load::Bench;

#[test]
fn one_connection_is_enough_with_degree_1_and_other_commands_say_what_to_do() {
    let bench = Bench::new();
    let file = bench.contacts("2000");
    let file = file.to_str().unwrap();
    let url = bench.server.url();
    let (host, database) = url.rsplit_once('/').unwrap();
    let (_, host) = host.rsplit_once('@').unwrap();
    let sql = format!(
        "CREATE ROLE one LOGIN PASSWORD 'x' CONNECTION LIMIT 1; GRANT ALL ON DATABASE {database} TO one; \
         GRANT ALL ON SCHEMA public TO one"
    );
    bench.client().batch_execute(&sql).unwrap();
    let address = format!("postgres://one:x@{host}/{database}");
    let run = |words: &[&str], more: &[&str]| sawmill([words, &["--to", &address], more].concat());

    let several = run(&["load", file], &["--table", "t", "--connections", "3"]).fails(2);
    assert!(several.contains("may have one connection, and 4 are needed"), "{several}");
    assert!(!bench.exists("loads"));
    for part in ["1/2", "2/2"] {
        run(&["load", file], &["--table", "t", "--connections", "1", "--part", part]).ok();
    }
    run(&["load", "finish"], &["--table", "t", "--verify"]).ok();
    run(&["verify", file], &["--table", "t", "--connections", "1"]).ok();
    let status = run(&["load", "status"], &[]).ok();
    assert!(status.out.contains("public.t"), "{}", status.out);
    assert_eq!(bench.count("SELECT count(*) FROM t"), 2000);

    let _other = postgres::Client::connect(&address, postgres::NoTls).unwrap();
    for words in [["load", file], ["verify", file]] {
        let refused = run(&words, &["--table", "u", "--connections", "1", "--retries", "0"]).fails(1);
        assert!(refused.contains("too many connections for role"), "{refused}");
        assert!(refused.contains("--connections 1") && refused.contains("CONNECTION LIMIT"), "{refused}");
    }
}
