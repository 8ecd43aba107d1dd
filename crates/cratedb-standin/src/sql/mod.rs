//! SQL, as much as a loader sends; everything else is a syntax error.
//!
//! Its own parser, because `sqlparser` 0.64 rejects CrateDB's CLUSTERED INTO, PARTITIONED BY, OBJECT(...) AS,
//! ARRAY(...), INDEX OFF, REFRESH, OPTIMIZE ... WITH and SWAP TABLE, and accepts clauses that CrateDB
//! rejects.

mod clauses;
mod create;
mod cursor;
mod data_type;
mod insert;
mod statements;
mod tokens;

use crate::types::Type;

use cursor::Cursor;

/// Schema and name.
pub(crate) type Name = (String, String);

/// A column of CREATE TABLE.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    /// Its name.
    pub(crate) name: String,
    /// Its type; a generated column is a timestamp.
    pub(crate) data_type: Type,
    /// Rejects NULL.
    pub(crate) not_null: bool,
    /// Neither indexed nor in the column store.
    pub(crate) plain: bool,
    /// It is the time of the insertion where the statement names no value.
    pub(crate) stamped: bool,
    /// The `date_trunc` unit and source column of a generated column.
    pub(crate) generated: Option<(String, String)>,
}

/// A value in a statement.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expression {
    /// A column.
    Column(String),
    /// A literal, as JSON text.
    Literal(String),
    /// The argument with this index.
    Parameter(usize),
}

/// A condition.
#[derive(Clone, Debug)]
pub(crate) enum Condition {
    /// All are true.
    And(Vec<Condition>),
    /// At least one is true.
    Or(Vec<Condition>),
    /// `=`, `<` or `>`.
    Compare(Expression, char, Expression),
    /// The column's value is in the list.
    In(Expression, Vec<Expression>),
    /// The column has no value.
    IsNull(Expression),
}

/// How a statement converts a value passed by column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cast {
    /// Unchanged.
    Plain,
    /// `c::type`
    Direct(Type),
    /// `CASE WHEN c IS NULL THEN NULL ELSE c::type END`
    UnlessNull(Type),
    /// `(('{"a":' || c || '}')::object(ignored))['a']::type`
    OfField(Type),
    /// A parameter beside the arrays: one value for all rows.
    Scalar,
}

/// CREATE TABLE
#[derive(Clone, Debug, Default)]
pub(crate) struct CreateTable {
    pub(crate) name: Name,
    pub(crate) if_not_exists: bool,
    pub(crate) columns: Vec<Column>,
    pub(crate) key: Vec<String>,
    pub(crate) shards: usize,
    pub(crate) partitioned: Option<String>,
    /// The most columns and fields that the table may have.
    pub(crate) most_columns: usize,
    /// `translog.durability` is `ASYNC`: a crash loses acknowledged rows.
    pub(crate) asynchronous: bool,
}

/// SELECT
#[derive(Clone, Debug)]
pub(crate) struct Select {
    pub(crate) name: Name,
    /// Empty for `count(*)`.
    pub(crate) columns: Vec<String>,
    /// Rows are counted by the values of this column.
    pub(crate) group: Option<String>,
    pub(crate) condition: Option<Condition>,
    pub(crate) order: Vec<String>,
    pub(crate) limit: Option<usize>,
}

/// The effect on a row whose key exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OnConflict {
    /// It is refused.
    Refuse,
    /// `DO NOTHING`
    Ignore,
    /// `(key) DO UPDATE SET`: these columns of the existing row take the new row's values.
    Update { key: Vec<String>, set: Vec<String> },
}

/// A statement.
#[derive(Clone, Debug)]
pub(crate) enum Statement {
    /// CREATE TABLE
    Create(CreateTable),
    /// DROP TABLE
    Drop { name: Name, if_exists: bool },
    /// ALTER TABLE ... RENAME TO
    Rename { name: Name, to: String },
    /// ALTER TABLE ... ADD COLUMN
    AddColumns { name: Name, columns: Vec<Column> },
    /// ALTER TABLE ... DROP COLUMN
    DropColumn { name: Name, column: String },
    /// KILL
    Kill(String),
    /// ALTER CLUSTER SWAP TABLE
    Swap { source: Name, target: Name, drop_source: bool },
    /// REFRESH TABLE
    Refresh(Name),
    /// OPTIMIZE TABLE
    Optimize { name: Name, flush: bool },
    /// INSERT ... VALUES
    Insert { name: Name, columns: Vec<String>, rows: Vec<Vec<Expression>>, conflict: OnConflict },
    /// INSERT ... SELECT FROM UNNEST: the parameter and the cast for each column.
    Unnest { name: Name, columns: Vec<String>, sources: Vec<(usize, Cast)>, conflict: OnConflict },
    /// SELECT
    Select(Select),
    /// UPDATE
    Update { name: Name, set: Vec<(String, Expression)>, condition: Option<Condition> },
    /// DELETE
    Delete { name: Name, condition: Option<Condition> },
    /// SHOW CREATE TABLE
    ShowCreate(Name),
    /// SET, BEGIN and COMMIT
    Nothing(String),
}

/// Parses one statement; tables without a schema belong to `schema`.
pub(crate) fn parse(sql: &str, schema: &str) -> Result<Statement, String> {
    let mut cursor = Cursor::new(sql, schema)?;
    let statement = cursor.statement()?;
    cursor.sign(";");
    cursor.end()?;
    Ok(statement)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_of_the_loader_are_known() {
        for sql in [
            r#"CREATE TABLE "t" ("i" BIGINT NOT NULL, "m" GENERATED ALWAYS AS date_trunc('month', "at"), "at" TIMESTAMP WITH TIME ZONE, PRIMARY KEY ("i")) CLUSTERED INTO 3 SHARDS WITH ("number_of_replicas" = 0)"#,
            r#"CREATE TABLE "t" ("o" ARRAY(OBJECT(STRICT) AS ("a" NUMERIC(9, 2), "b" ARRAY(TEXT))), "x" TEXT INDEX OFF STORAGE WITH (columnstore = false))"#,
            r#"INSERT INTO "t" ("a") (SELECT (('{"a":' || "c" || '}')::OBJECT(IGNORED))['a']::ARRAY(BIGINT) FROM UNNEST($1) AS u ("c")) ON CONFLICT DO NOTHING"#,
            r#"ALTER CLUSTER SWAP TABLE "a" TO "b" WITH (drop_source = true)"#,
            r#"INSERT INTO "t" ("a", "b") (SELECT c1, $2 FROM UNNEST($1) AS "u" (c1)) /* a comment */"#,
            r#"SELECT "b", count(*) FROM "t" WHERE "b" > ? GROUP BY "b" ORDER BY "b" LIMIT 10"#,
            r#"DELETE FROM "t" WHERE "b" IS NULL"#,
            r#"ALTER TABLE "t" DROP COLUMN "b""#,
            r#"ALTER TABLE "t" ADD COLUMN "b" BIGINT, ADD COLUMN "c" ARRAY(TEXT)"#,
            "SELECT id, stmt FROM sys.jobs",
            "KILL 'c218384a-cdd8-60ac-d6be-9f87b0bc67cb'",
            r#"OPTIMIZE TABLE "t" WITH (only_expunge_deletes = true, flush = true)"#,
            r#"SELECT settings['translog']['durability'] FROM information_schema.tables WHERE table_name = ?"#,
        ] {
            if let Err(what) = parse(sql, "doc") {
                panic!("{sql}: {what}");
            }
        }
    }

    #[test]
    fn clauses_of_other_databases_are_syntax_errors() {
        for sql in [
            "CREATE TABLE t (a bigint) ENGINE = InnoDB",
            "CREATE TABLE t (a bigint AUTO_INCREMENT)",
            "SELECT * FROM t TABLESAMPLE BERNOULLI (10)",
            "DELETE FROM t USING u WHERE t.a = u.a",
            "UPDATE t SET a = 1 FROM u",
            "INSERT OR REPLACE INTO t (a) VALUES (1)",
            "SELECT TOP 3 * FROM t",
            "SELECT a FROM t; SELECT b FROM t",
        ] {
            assert!(parse(sql, "doc").is_err(), "{sql}");
        }
    }
}
