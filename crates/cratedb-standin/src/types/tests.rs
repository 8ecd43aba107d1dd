//! The real server's changes to values, silent or not.

use super::calendar::days;
use super::*;
use crate::json::Json;

fn cast(data_type: &Type, json: &str) -> Result<Value, Refused> {
    data_type.cast(&Json::parse(json).unwrap())
}

#[test]
fn numbers_beyond_64_bits_wrap_and_fractions_are_truncated_unlike_strings() {
    let bigint = Type::Integer(64);
    assert_eq!(cast(&bigint, "18446744073709551615"), Ok(Value::Int(-1)));
    assert_eq!(cast(&bigint, "1.5"), Ok(Value::Int(1)));
    assert!(matches!(cast(&bigint, "\"9223372036854775808\""), Err(Refused::Request(_))));
    assert!(matches!(cast(&Type::Integer(16), "40000"), Err(Refused::Request(_))));
}

#[test]
fn both_ends_of_64_bits_reject_the_row_unless_the_field_is_untyped() {
    for end in [i64::MIN, i64::MAX] {
        for (data_type, json) in [
            (Type::Integer(64), end.to_string()),
            (Type::Integer(64), format!("\"{end}\"")),
            (Type::Timestamp(true), end.to_string()),
            (Type::Array(Box::new(Type::Integer(64))), format!("[1,{end}]")),
        ] {
            assert!(matches!(cast(&data_type, &json), Err(Refused::Row(4000, _))), "{json}");
        }
        let ignored = Type::Object(Policy::Ignored, Vec::new());
        assert!(cast(&ignored, &format!("{{\"a\":{end}}}")).is_ok());
    }
    let ignored = Type::Object(Policy::Ignored, Vec::new());
    assert!(matches!(cast(&ignored, "{\"a\":9223372036854775808}"), Err(Refused::Row(5000, _))));
}

#[test]
fn points_vectors_addresses_bits_and_characters_are_checked_and_brought_to_one_form() {
    let shown = |data_type: &Type, json: &str| cast(data_type, json).map(|value| to_json(&value));
    for json in ["[7.5, -50]", "\"[7.5,-50]\"", "\"POINT (7.5 -50)\""] {
        assert_eq!(shown(&Type::GeoPoint, json), Ok("[7.5,-50.0]".into()), "{json}");
    }
    assert_eq!(cast(&Type::GeoPoint, "[null, 1]"), Ok(Value::Null));
    for json in ["[1]", "[181, 1]", "[1, 91]", "\"LINE (1 2)\"", "1"] {
        assert!(matches!(cast(&Type::GeoPoint, json), Err(Refused::Request(_))), "{json}");
    }
    assert_eq!(shown(&Type::FloatVector(2), "[0.1, 2]"), Ok("[0.1,2.0]".into()));
    assert!(matches!(cast(&Type::FloatVector(2), "[1, 2, 3]"), Err(Refused::Row(4000, _))));
    assert!(matches!(cast(&Type::FloatVector(2), "[1, null]"), Err(Refused::Request(_))));
    assert_eq!(shown(&Type::Ip, "\"::FFFF:192.0.2.1\""), Ok("\"192.0.2.1\"".into()));
    assert_eq!(shown(&Type::Ip, "\"2001:DB8:0:0::1\""), Ok("\"2001:db8::1\"".into()));
    assert!(matches!(cast(&Type::Ip, "\"1.2.3\""), Err(Refused::Request(_))));
    assert_eq!(shown(&Type::Bit(4), "\"0101\""), Ok("\"B'0101'\"".into()));
    assert!(matches!(cast(&Type::Bit(4), "\"01010\""), Err(Refused::Row(4000, _))));
    assert!(matches!(cast(&Type::Bit(4), "\"012a\""), Err(Refused::Request(_))));
    assert_eq!(shown(&Type::Character(3), "\"a\""), Ok("\"a  \"".into()));
    assert_eq!(shown(&Type::Character(3), "\"abc  \""), Ok("\"abc\"".into()));
    assert!(matches!(cast(&Type::Character(3), "\"abcd\""), Err(Refused::Row(4000, _))));
}

#[test]
fn shapes_are_objects_that_are_stored_unchanged() {
    let refused = |json: &str| cast(&Type::GeoShape, json).unwrap_err();
    for json in [
        r#"{"type":"point","coordinates":[1,2.5]}"#,
        r#"{"type":"LineString","coordinates":[[1,2],[3,4]],"crs":null}"#,
        r#"{"type":"Polygon","coordinates":[[[0,0],[1,0],[1,1],[0,0]]]}"#,
        r#"{"type":"GeometryCollection","geometries":[{"type":"Point","coordinates":[1,2]}]}"#,
    ] {
        assert_eq!(cast(&Type::GeoShape, json), Ok(untyped(&Json::parse(json).unwrap())), "{json}");
    }
    for json in [
        "{}",
        r#"{"type":"Circle","coordinates":[1,2]}"#,
        r#"{"type":"Point","coordinates":[1,91]}"#,
        r#"{"type":"Point","coordinates":["1",2]}"#,
        r#"{"type":"LineString","coordinates":[1,2]}"#,
        r#"{"type":"GeometryCollection"}"#,
        "[1,2]",
    ] {
        assert!(matches!(refused(json), Refused::Request(_)), "{json}");
    }
    for json in [
        r#"{"type":"LineString","coordinates":[[1,2]]}"#,
        r#"{"type":"Polygon","coordinates":[[[0,0],[1,0],[0,0]]]}"#,
        r#"{"type":"MultiPolygon","coordinates":[[[[0,0],[1,0],[1,1],[0,1]]]]}"#,
    ] {
        assert!(matches!(refused(json), Refused::Row(4000, _)), "{json}");
    }
    assert_eq!(Type::Array(Box::new(Type::GeoShape)).shown_column(1), "ARRAY(GEO_SHAPE) INDEX USING GEOHASH");
}

#[test]
fn a_dynamic_object_guesses_types_from_first_values_and_keeps_them() {
    let mut object = Type::Object(Policy::Dynamic, Vec::new());
    let first = Json::parse("{\"i\":1,\"f\":1.0,\"t\":\"NaN\",\"n\":null,\"e\":[],\"l\":[{\"q\":1}]}");
    object.learn(&first.unwrap());
    assert_eq!(
        object.shown(0),
        "OBJECT(DYNAMIC) AS (\n   \"i\" BIGINT,\n   \"f\" DOUBLE PRECISION,\n   \"t\" TEXT,\n   \
         \"l\" ARRAY(OBJECT(DYNAMIC) AS (\n      \"q\" BIGINT\n   ))\n)"
    );
    let Ok(Value::Object(stored)) = cast(&object, "{\"i\":1.5,\"t\":1.5}") else {
        panic!("an object type converts to an object")
    };
    assert_eq!(stored[0].1, Value::Int(1));
    assert_eq!(stored[1].1, Value::Text("1.5".into()));
}

#[test]
fn numerics_go_through_a_double_as_numbers_but_not_as_strings() {
    let numeric = Type::Numeric(Some((38, 2)));
    assert_eq!(
        cast(&numeric, "\"12345678901234567890.12\""),
        Ok(Value::Numeric("12345678901234567890.12".into()))
    );
    assert_ne!(cast(&numeric, "12345678901234567890.12"), cast(&numeric, "\"12345678901234567890.12\""));
    assert_eq!(cast(&numeric, "\"9.995\""), Ok(Value::Numeric("10.00".into())));
    assert_eq!(cast(&numeric, "\"-0.001\""), Ok(Value::Numeric("0.00".into())));
}

#[test]
fn timestamps_are_truncated_to_milliseconds() {
    assert_eq!(cast(&Type::Timestamp(false), "\"1970-01-02T00:00:00.123456Z\""), Ok(Value::Int(86_400_123)));
    assert_eq!(date_trunc("month", 1_709_251_199_999), days(2024, 2, 1) * 86_400_000);
    assert_eq!(date_trunc("week", 0), -3 * 86_400_000);
}

#[test]
fn objects_and_arrays_are_as_strict_as_declared() {
    let fields = vec![("a".to_owned(), Type::Integer(64))];
    assert!(matches!(
        cast(&Type::Object(Policy::Strict, fields.clone()), "{\"b\":1}"),
        Err(Refused::Row(..))
    ));
    assert!(cast(&Type::Object(Policy::Dynamic, fields), "{\"b\":1}").is_ok());
    let array = Type::Array(Box::new(Type::Text(None)));
    let texts = ["1", "a"].map(|text| Value::Text(text.into()));
    assert_eq!(cast(&array, "[1,\"a\"]"), Ok(Value::Array(texts.to_vec())));
    let integers = Type::Array(Box::new(Type::Integer(64)));
    assert!(matches!(cast(&integers, "[1,\"a\"]"), Err(Refused::Request(_))));
    assert!(matches!(cast(&Type::Text(Some(2)), "\"abc\""), Err(Refused::Row(..))));
    assert!(matches!(cast(&Type::Text(Some(2)), "\"ab\\t\""), Err(Refused::Row(..))));
    assert_eq!(cast(&Type::Text(Some(2)), "\"a   \""), Ok(Value::Text("a ".into())));
}
