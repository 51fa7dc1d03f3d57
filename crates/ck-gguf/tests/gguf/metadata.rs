//! Typed metadata, and what the writer writes.

use ck_gguf::{Array, Error, GgufFile, GgufWriter, TensorType, Value, ValueType};

/// One value of every type.
const VALUES: [(&str, Value<'static>); 12] = [
    ("u8", Value::U8(200)),
    ("i8", Value::I8(-3)),
    ("u16", Value::U16(65_535)),
    ("i16", Value::I16(-300)),
    ("u32", Value::U32(u32::MAX)),
    ("i32", Value::I32(-70_000)),
    ("f32", Value::F32(0.1)),
    ("bool", Value::Bool(true)),
    ("string", Value::String("naïve")),
    ("u64", Value::U64(u64::MAX)),
    ("i64", Value::I64(i64::MIN)),
    ("f64", Value::F64(1e300)),
];

#[test]
fn every_type_is_written_and_read_back() {
    let mut writer = GgufWriter::new();
    for (key, value) in VALUES {
        writer.value(key, value);
        let array = format!("{key} array");
        writer.values(&array, &[value, value]).expect("elements of one type");
    }
    writer.values("empty", &[]).expect("no elements");
    let bytes = writer.finish().expect("the file parses");
    let file = GgufFile::parse(&bytes).expect("the file parses");
    let metadata = file.metadata();
    assert_eq!(metadata.iter().len(), 25);
    for (key, value) in VALUES {
        assert_eq!(metadata.require(key).ok(), Some(value), "{key}");
        assert_eq!(value.value_type().name(), key);
        let array: Array<'_> = metadata.require(&format!("{key} array")).expect(key);
        assert_eq!(array.element_type(), value.value_type());
        assert_eq!((array.len(), array.is_empty()), (2, false));
        assert_eq!(array.iter().collect::<Vec<_>>(), [value, value], "{key}");
    }
    let empty: Array<'_> = metadata.require("empty").expect("an array");
    assert!(empty.is_empty() && empty.iter().next().is_none());
}

#[test]
fn arrays_of_arrays_are_read_back() {
    let mut inner = GgufWriter::new();
    inner.values("a", &[Value::U8(1), Value::U8(2)]).expect("one type");
    inner.values("b", &[Value::String("x")]).expect("one type");
    let bytes = inner.finish().expect("the file parses");
    let file = GgufFile::parse(&bytes).expect("the file parses");
    let arrays: Vec<_> = file.metadata().iter().map(|(_, value)| value).collect();

    let mut outer = GgufWriter::new();
    outer.values("nested", &arrays).expect("all are arrays");
    let bytes = outer.finish().expect("the file parses");
    let file = GgufFile::parse(&bytes).expect("the file parses");
    let nested: Array<'_> = file.metadata().require("nested").expect("an array");
    assert_eq!(nested.element_type(), ValueType::Array);
    assert_eq!(format!("{nested:?}"), "[Array([U8(1), U8(2)]), Array([String(\"x\")])]");
}

/// The value converted to `T` after going through a file.
fn converted<T>(value: Value<'_>) -> Result<Option<T>, String>
where
    T: for<'a> ck_gguf::FromValue<'a>,
{
    let mut writer = GgufWriter::new();
    let bytes = writer.value("k", value).finish().expect("the file parses");
    let file = GgufFile::parse(&bytes).expect("the file parses");
    file.metadata().get("k").map_err(|error| error.to_string())
}

#[test]
fn integers_convert_if_they_fit() {
    assert_eq!(converted(Value::U8(7)), Ok(Some(7_u32)));
    assert_eq!(converted(Value::I64(7)), Ok(Some(7_u32)));
    assert_eq!(converted(Value::U64(u64::MAX)), Ok(Some(u64::MAX)));
    assert_eq!(converted(Value::I16(7)), Ok(Some(7_usize)));
    let too_large = "metadata key \"k\" is u64 4294967296: expected an integer that fits u32";
    assert_eq!(converted::<u32>(Value::U64(1 << 32)), Err(too_large.to_owned()));
    for value in [Value::I32(-1), Value::F32(7.0), Value::Bool(true), Value::String("7")] {
        assert!(converted::<u64>(value).is_err(), "{value}");
        assert!(converted::<usize>(value).is_err(), "{value}");
    }
}

// Case B57: a base may be an integer or f64.
#[test]
fn numbers_convert_to_floats() {
    assert_eq!(converted(Value::U32(1_000_000)), Ok(Some(1e6_f32)));
    assert_eq!(converted(Value::F64(0.1)), Ok(Some(0.1_f32)));
    assert_eq!(converted(Value::F32(0.1)), Ok(Some(f64::from(0.1_f32))));
    assert_eq!(converted(Value::F64(f64::INFINITY)), Ok(Some(f32::INFINITY)));
    assert_eq!(converted(Value::I8(-2)), Ok(Some(-2.0_f64)));
    assert!(converted::<f32>(Value::F64(1e300)).is_err());
    assert!(converted::<f64>(Value::Bool(true)).is_err());
    assert!(converted::<f32>(Value::String("1")).is_err());
    assert_eq!(converted(Value::Bool(false)), Ok(Some(false)));
    assert!(converted::<bool>(Value::U8(1)).is_err());
}

#[test]
fn absent_keys_are_named() {
    let bytes = GgufWriter::new().finish().expect("an empty file");
    let file = GgufFile::parse(&bytes).expect("an empty file");
    assert_eq!(file.metadata().get::<u32>("a.b").ok(), Some(None));
    let error = file.metadata().require::<&str>("a.b").expect_err("there is none");
    assert_eq!(error.to_string(), "metadata key \"a.b\" is missing: expected a string");
    let error = file.tensor("w").expect_err("there is none");
    assert_eq!(error.to_string(), "tensor \"w\" is missing");
}

#[test]
fn tensors_are_written_aligned_and_read_back() {
    let mut writer = GgufWriter::new();
    writer.f32_tensor("a", &[3], &[1.0, -2.5, f32::MIN_POSITIVE]).expect("three elements");
    writer.tensor("b", &[32, 2, 1, 3], TensorType::Q8_0, &[7; 204]).expect("six blocks");
    writer.tensor("c", &[2], TensorType::F16, &[0x00, 0x3C, 0x01, 0x00]).expect("two halves");
    let bytes = writer.finish().expect("the file parses");
    let file = GgufFile::parse(&bytes).expect("the file parses");

    let names: Vec<_> = file.tensors().map(|tensor| tensor.name()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    for tensor in file.tensors() {
        let start = tensor.bytes().as_ptr().addr() - bytes.as_ptr().addr();
        assert_eq!(start % 32, 0, "{tensor:?}");
    }
    let a = file.tensor("a").expect("it is there");
    assert_eq!(a.to_f32().ok(), Some(vec![1.0, -2.5, f32::MIN_POSITIVE]));
    let b = file.tensor("b").expect("it is there");
    assert_eq!((b.dims(), b.columns(), b.rows()), (&[32, 2, 1, 3][..], 32, 6));
    assert_eq!(b.bytes(), [7; 204]);
    let error = b.to_f32().expect_err("Q8_0 is no vector");
    assert_eq!(error.to_string(), "tensor \"b\" has type 8 (Q8_0): expected F32 (0) or F16 (1)");
    let c = file.tensor("c").expect("it is there");
    assert_eq!(c.to_f32().ok(), Some(vec![1.0, f32::powi(2.0, -24)]));
}

// Case B12: lengths that do not agree with the shape.
#[test]
fn the_writer_refuses_what_would_not_open() {
    let mut writer = GgufWriter::new();
    for len in [135, 137, 0] {
        let error = writer.tensor("w", &[64, 2], TensorType::Q8_0, &vec![0; len]);
        let error = error.expect_err("136 bytes are needed");
        assert!(matches!(error, Error::DataLength { expected: 136, .. }), "{error:?}");
    }
    let mut refused = |dims: &[usize]| {
        writer.tensor("w", dims, TensorType::Q8_0, &[]).expect_err("wrong dimensions").to_string()
    };
    assert!(refused(&[48]).contains("multiple of 32"));
    assert!(refused(&[0]).contains("zero elements"));
    assert!(refused(&[]).contains("0 dimensions"));
    assert!(refused(&[32; 5]).contains("5 dimensions"));
    assert!(refused(&[1 << 32, 1 << 32]).contains("larger than any memory"));
    let mixed = writer.values("k", &[Value::U8(1), Value::U16(2)]).expect_err("two types");
    assert!(mixed.to_string().contains("\"k\""), "{mixed}");
    let bytes = writer.finish().expect("nothing was added");
    assert_eq!(bytes.len(), 32);

    writer.tensor("w", &[64, 2], TensorType::Q8_0, &[0; 136]).expect("136 bytes");
    let twice = writer.tensor("w", &[1], TensorType::F32, &[0; 4]).expect("four bytes").finish();
    assert!(matches!(twice, Err(Error::Duplicate { .. })), "{twice:?}");
    let aligned = GgufWriter::new().value("general.alignment", Value::U32(64)).finish();
    assert!(matches!(aligned, Err(Error::BadValue { .. })), "{aligned:?}");
    let unnamed = GgufWriter::new().value("", Value::U32(64)).finish();
    assert!(matches!(unnamed, Err(Error::NameLength { .. })), "{unnamed:?}");
}
