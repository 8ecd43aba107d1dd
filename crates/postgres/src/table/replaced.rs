//! The properties of a replaced table: grants and comments move to the new table, and a note names all others
//! that the new one lacks.

use std::collections::HashSet;

use sawmill_loader::{TableName, quote};
use sawmill_pgwire::Connection;
use sawmill_source::{Control, Result};

use crate::table::catalogue::value;

/// A table before it is dropped.
pub(crate) struct Replaced {
    owner: String,
    grants: Vec<Grant>,
    comments: Vec<Comment>,
    traits: Vec<String>,
}

/// A privilege on the table, or on one of its columns. Roles and literals are quoted by the server.
struct Grant {
    column: Option<String>,
    role: String,
    privilege: String,
    grantable: bool,
}

/// A comment on the table, or on one of its columns.
struct Comment {
    column: Option<String>,
    literal: String,
}

const GRANTS: &str = "\
    SELECT acl.attname, CASE acl.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(r.rolname) END, \
      acl.privilege_type, acl.is_grantable \
    FROM (SELECT NULL::text AS attname, a.* FROM pg_catalog.pg_class c \
          CROSS JOIN LATERAL aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) a WHERE c.oid = $1 \
          UNION ALL SELECT t.attname::text, a.* FROM pg_catalog.pg_attribute t \
          CROSS JOIN LATERAL aclexplode(t.attacl) a WHERE t.attrelid = $1 AND t.attnum > 0 AND NOT t.attisdropped) acl \
    LEFT JOIN pg_catalog.pg_roles r ON r.oid = acl.grantee \
    WHERE acl.grantee = 0 OR r.rolname <> current_user ORDER BY 1 NULLS FIRST, 2, 3";

const COMMENTS: &str = "\
    SELECT a.attname::text, quote_literal(d.description) FROM pg_catalog.pg_description d \
    LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = d.objoid AND a.attnum = d.objsubid AND d.objsubid <> 0 \
    WHERE d.objoid = $1 AND d.classoid = 'pg_catalog.pg_class'::regclass ORDER BY d.objsubid";

/// Describes each without the table's name, so that two tables can be compared.
const TRAITS: &str = "\
    SELECT 'index ' || regexp_replace(pg_get_indexdef(i.indexrelid), '^CREATE (UNIQUE )?INDEX .*? USING ', '\\1') \
      FROM pg_catalog.pg_index i WHERE i.indrelid = $1 \
      AND NOT EXISTS (SELECT FROM pg_catalog.pg_constraint c WHERE c.conindid = i.indexrelid AND c.conrelid = $1) \
    UNION ALL SELECT 'constraint ' || pg_get_constraintdef(oid) FROM pg_catalog.pg_constraint \
      WHERE conrelid = $1 AND contype IN ('c', 'f', 'p', 'u', 'x') \
    UNION ALL SELECT 'NOT NULL of column ' || quote_ident(attname) FROM pg_catalog.pg_attribute \
      WHERE attrelid = $1 AND attnum > 0 AND NOT attisdropped AND attnotnull \
    UNION ALL SELECT 'default of column ' || quote_ident(a.attname) || ': ' || pg_get_expr(d.adbin, d.adrelid) \
      FROM pg_catalog.pg_attrdef d JOIN pg_catalog.pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum \
      WHERE d.adrelid = $1 \
    UNION ALL SELECT 'identity of column ' || quote_ident(attname) FROM pg_catalog.pg_attribute \
      WHERE attrelid = $1 AND attidentity <> '' AND NOT attisdropped \
    UNION ALL SELECT 'trigger ' || quote_ident(tgname) FROM pg_catalog.pg_trigger \
      WHERE tgrelid = $1 AND NOT tgisinternal \
    UNION ALL SELECT 'policy ' || quote_ident(polname) FROM pg_catalog.pg_policy WHERE polrelid = $1 \
    UNION ALL SELECT 'row level security' FROM pg_catalog.pg_class WHERE oid = $1 AND relrowsecurity \
    UNION ALL SELECT 'rule ' || quote_ident(rulename) FROM pg_catalog.pg_rewrite WHERE ev_class = $1 \
    UNION ALL SELECT 'statistics ' || quote_ident(stxname) FROM pg_catalog.pg_statistic_ext WHERE stxrelid = $1 \
    UNION ALL SELECT 'parameter ' || unnest(reloptions) FROM pg_catalog.pg_class WHERE oid = $1 \
    UNION ALL SELECT 'publication ' || quote_ident(p.pubname) FROM pg_catalog.pg_publication_rel r \
      JOIN pg_catalog.pg_publication p ON p.oid = r.prpubid WHERE r.prrelid = $1 \
    UNION ALL SELECT 'inheritance from ' || inhparent::regclass::text FROM pg_catalog.pg_inherits WHERE inhrelid = $1 \
    ORDER BY 1";

impl Replaced {
    /// Takes the lock that dropping takes, and reads the table's grants, comments and other traits.
    pub(crate) fn locked(
        connection: &Connection,
        table: &TableName,
        oid: u32,
        control: &Control<'_>,
    ) -> Result<Self> {
        connection.batch(control, &format!("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE", table.quoted()))?;
        let mut grants = Vec::new();
        for row in connection.query(control, GRANTS, &[&oid])? {
            grants.push(Grant {
                column: connection.get(&row, 0)?,
                role: connection.get(&row, 1)?,
                privilege: connection.get(&row, 2)?,
                grantable: connection.get(&row, 3)?,
            });
        }
        let mut comments = Vec::new();
        for row in connection.query(control, COMMENTS, &[&oid])? {
            comments.push(Comment { column: connection.get(&row, 0)?, literal: connection.get(&row, 1)? });
        }
        let owner = owner(connection, oid, control)?;
        Ok(Self { owner, grants, comments, traits: traits(connection, oid, control)? })
    }

    /// Applies the grants and comments to the new table. Returns a line for each property that it lacks.
    pub(crate) fn hand_on(
        &self,
        connection: &Connection,
        table: &TableName,
        control: &Control<'_>,
    ) -> Result<Vec<String>> {
        let sql = "SELECT to_regclass($1)::oid, array_agg(attname::text) FROM pg_catalog.pg_attribute \
                   WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped";
        let rows = connection.query(control, sql, &[&table.quoted()])?;
        let Some(row) = rows.first() else { return Ok(Vec::new()) };
        let (oid, columns): (u32, Vec<String>) = (connection.get(row, 0)?, connection.get(row, 1)?);
        let there = |column: &Option<String>| column.as_ref().is_none_or(|column| columns.contains(column));
        let (mut statements, mut lost) = (Vec::new(), Vec::new());
        for Grant { column, role, privilege, grantable } in &self.grants {
            if there(column) {
                let column =
                    column.as_ref().map(|column| format!(" ({})", quote(column))).unwrap_or_default();
                let option = if *grantable { " WITH GRANT OPTION" } else { "" };
                statements
                    .push(format!("GRANT {privilege}{column} ON TABLE {} TO {role}{option}", table.quoted()));
            } else if let Some(column) = column {
                lost.push(format!(
                    "{privilege} of {role} on column {}, which no longer exists",
                    quote(column)
                ));
            }
        }
        for Comment { column, literal } in &self.comments {
            match column {
                None => statements.push(format!("COMMENT ON TABLE {} IS {literal}", table.quoted())),
                Some(name) if there(column) => {
                    statements.push(format!(
                        "COMMENT ON COLUMN {}.{} IS {literal}",
                        table.quoted(),
                        quote(name)
                    ));
                }
                Some(name) => lost.push(format!("comment on column {}, which no longer exists", quote(name))),
            }
        }
        if !statements.is_empty() {
            connection.batch(control, &statements.join("; "))?;
        }
        let now = owner(connection, oid, control)?;
        if now != self.owner {
            lost.push(format!("owner {}: it is {now} now, and the old one has grants", self.owner));
        }
        let new: HashSet<String> = traits(connection, oid, control)?.into_iter().collect();
        lost.extend(self.traits.iter().filter(|one| !new.contains(*one)).cloned());
        Ok(lost)
    }
}

/// The note on a replaced table, if the new one lacks something.
pub(crate) fn note(table: &TableName, lost: &[String]) -> Option<String> {
    (!lost.is_empty()).then(|| format!("{table} was replaced and no longer has: {}", lost.join("; ")))
}

fn owner(connection: &Connection, oid: u32, control: &Control<'_>) -> Result<String> {
    let sql = "SELECT pg_get_userbyid(relowner)::text FROM pg_catalog.pg_class WHERE oid = $1";
    value(connection, control, sql, &[&oid])
}

fn traits(connection: &Connection, oid: u32, control: &Control<'_>) -> Result<Vec<String>> {
    connection.query(control, TRAITS, &[&oid])?.iter().map(|row| connection.get(row, 0)).collect()
}
