//! Objects that take on the fields of their rows.

use super::{Policy, Type};
use crate::json::Json;

impl Type {
    /// Adds the fields that a dynamic object lacks, with types guessed from this value. NULL and empty arrays
    /// add none.
    pub(crate) fn learn(&mut self, json: &Json) {
        match (self, json) {
            (Type::Object(policy, fields), Json::Object(members)) => {
                for (name, json) in members {
                    match fields.iter_mut().find(|(field, _)| field == name) {
                        Some((_, field)) => field.learn(json),
                        None if *policy == Policy::Dynamic => {
                            fields.extend(guessed(json).map(|field| (name.clone(), field)));
                        }
                        None => {}
                    }
                }
            }
            (Type::Array(item), Json::Array(items)) => items.iter().for_each(|json| item.learn(json)),
            _ => {}
        }
    }
}

/// The type that a dynamic object guesses for a field with this value.
fn guessed(json: &Json) -> Option<Type> {
    Some(match json {
        Json::Null => return None,
        Json::Bool(_) => Type::Boolean,
        Json::Number(text) if text.contains(['.', 'e', 'E']) => Type::Double,
        Json::Number(_) => Type::Integer(64),
        Json::Text(_) => Type::Text(None),
        Json::Array(items) => {
            let types: Vec<Type> = items.iter().filter_map(guessed).collect();
            let double = types.iter().find(|item| **item == Type::Double);
            Type::Array(Box::new(double.or(types.first())?.clone()))
        }
        Json::Object(_) => {
            let mut object = Type::Object(Policy::Dynamic, Vec::new());
            object.learn(json);
            object
        }
    })
}
