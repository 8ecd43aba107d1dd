//! The properties of a replaced table: grants and comments move to the new table, and a note names all others
//! that the new one lacks. The server does not drop a table that views or foreign keys refer to: those are looked up
//! before the first row is sent.

use std::collections::HashSet;

use sawmill_loader::{TableName, quote};
use sawmill_source::{Error, Kind, Result};

use crate::table::catalogue::Link;

/// A table before it is dropped.
pub(crate) struct Replaced {
    owner: String,
    /// Privileges: the column, if it is of one, role, privilege, and whether it can be granted on. The server has quoted
    /// roles and literals.
    grants: Vec<(Option<String>, String, String, bool)>,
    /// Comments: the column, if it is of one, and the literal.
    comments: Vec<(Option<String>, String)>,
    traits: Vec<String>,
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
    pub(crate) fn locked(link: Link<'_>, table: &TableName, oid: u32) -> Result<Self> {
        link.batch(&format!("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE", table.quoted()))?;
        let (grants, comments) = (link.rows(GRANTS, &[&oid])?, link.rows(COMMENTS, &[&oid])?);
        Ok(Self { owner: owner(link, oid)?, grants, comments, traits: traits(link, oid)? })
    }

    /// Applies the grants and comments to the new table. Returns a line for each property that it lacks.
    pub(crate) fn hand_on(&self, link: Link<'_>, table: &TableName) -> Result<Vec<String>> {
        let sql = "SELECT to_regclass($1)::oid, array_agg(attname::text) FROM pg_catalog.pg_attribute \
                   WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped";
        let found: Option<(u32, Vec<String>)> = link.first(sql, &[&table.quoted()])?;
        let Some((oid, columns)) = found else { return Ok(Vec::new()) };
        let there = |column: &Option<String>| column.as_ref().is_none_or(|column| columns.contains(column));
        let (mut statements, mut lost) = (Vec::new(), Vec::new());
        for (column, role, privilege, grantable) in &self.grants {
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
        for (column, literal) in &self.comments {
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
            link.batch(&statements.join("; "))?;
        }
        let now = owner(link, oid)?;
        if now != self.owner {
            lost.push(format!("owner {}: it is {now} now, and the old one has grants", self.owner));
        }
        let new: HashSet<String> = traits(link, oid)?.into_iter().collect();
        lost.extend(self.traits.iter().filter(|one| !new.contains(*one)).cloned());
        Ok(lost)
    }
}

/// The note on a replaced table, if the new one lacks something.
pub(crate) fn note(table: &TableName, lost: &[String]) -> Option<String> {
    (!lost.is_empty()).then(|| format!("{table} was replaced and no longer has: {}", lost.join("; ")))
}

fn owner(link: Link<'_>, oid: u32) -> Result<String> {
    let sql = "SELECT pg_get_userbyid(relowner)::text FROM pg_catalog.pg_class WHERE oid = $1";
    link.value(sql, &[&oid])
}

fn traits(link: Link<'_>, oid: u32) -> Result<Vec<String>> {
    link.list(TRAITS, &[&oid])
}

/// Refuses to replace a table on which other objects depend, unless those are replaced `together` with it.
pub(crate) fn refuse_dependents(link: Link<'_>, table: &TableName, together: &[u32]) -> Result<()> {
    let sql = "SELECT DISTINCT CASE WHEN r.oid IS NULL THEN pg_catalog.pg_describe_object(d.classid, d.objid, 0) \
                 ELSE pg_catalog.pg_describe_object('pg_catalog.pg_class'::regclass, r.ev_class, 0) END \
               FROM pg_catalog.pg_depend d \
               LEFT JOIN pg_catalog.pg_rewrite r \
                 ON d.classid = 'pg_catalog.pg_rewrite'::regclass AND r.oid = d.objid \
               LEFT JOIN pg_catalog.pg_constraint c \
                 ON d.classid = 'pg_catalog.pg_constraint'::regclass AND c.oid = d.objid \
               WHERE d.refclassid = 'pg_catalog.pg_class'::regclass AND d.refobjid = ANY ($1) AND d.deptype = 'n' \
               AND (r.ev_class <> ALL ($1) OR c.contype = 'f' AND c.conrelid <> ALL ($1) AND c.conparentid = 0) ORDER BY 1";
    let others: Vec<String> = link.list(sql, &[&together])?;
    match others.is_empty() {
        true => Ok(()),
        false => Err(Error::new(
            Kind::Exists,
            format!(
                "the table cannot be replaced, because other objects depend on it: {}",
                others.join(", ")
            ),
        )
        .at(format!("table {table}, {}", link.place()))
        .advise("load in mode truncate, which keeps the table, or drop these first")),
    }
}
