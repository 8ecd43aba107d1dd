//! An ephemeral PostgreSQL server.
