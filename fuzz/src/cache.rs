//! Bytes as operations on a cache, beside a model that is a plain list of rows.

use crate::bits;
use arbitrary::{Arbitrary, Result, Unstructured};
use ck_isa::Isa;
use ck_ops::{
    AttendScratch, Attention, CHUNK, CacheElement, CacheShape, KvCache, NewPosition, OpError, Q8_0,
    flash_decode,
};
use ck_testing::generate::{Rng, Values};
use ck_testing::oracle::{BLOCK, CacheRounding};
use half::f16;

/// One operation. The values of rows come from the seeds.
#[derive(Debug, Arbitrary)]
enum Operation {
    Append { seed: u8, kind: u8 },
    AppendMany { seed: u8, count: u16 },
    Spoiled { seed: u8, at: u8, spoil: u8 },
    Truncate(u16),
    Clear,
    Reserve(u16),
    Huge(u64),
    Read { head: u8, position: u16 },
    Attend { seed: u8, window: u8, with_new: bool },
}

/// Runs the operations that the bytes say, on a cache of the element type that they say.
///
/// # Panics
///
/// If the cache and the model differ, or attention depends on anything but what is stored.
pub fn check(bytes: &[u8]) {
    // Bytes that end early end the sequence.
    let mut input = Unstructured::new(bytes);
    let _ = match input.int_in_range(0..=2) {
        Ok(1) => run::<f16>(&mut input, CacheRounding::F16),
        Ok(2) => run::<Q8_0>(&mut input, CacheRounding::Q8_0),
        _ => run::<f32>(&mut input, CacheRounding::None),
    };
}

fn run<E: CacheElement>(input: &mut Unstructured<'_>, rounding: CacheRounding) -> Result<()> {
    let n_kv_heads = input.int_in_range(1..=3)?;
    let head_dim = match rounding {
        CacheRounding::Q8_0 => BLOCK * input.int_in_range(1..=2)?,
        _ => 2 * input.int_in_range(1..=18)?,
    };
    let capacity = usize::from(u16::arbitrary(input)?) % (2 * CHUNK + 40);
    let shape = CacheShape::new(n_kv_heads, head_dim).unwrap();
    let mut both = Both {
        cache: KvCache::<E>::with_capacity(shape, capacity).unwrap(),
        new: NewPosition::new(shape).unwrap(),
        rows: Vec::new(),
        capacity,
        rounding,
    };
    for _ in 0..64 {
        if input.is_empty() {
            break;
        }
        both.apply(Operation::arbitrary(input)?);
        assert_eq!(both.cache.len(), both.rows.len());
        assert_eq!(both.cache.capacity(), both.capacity);
    }
    both.compare_everything();
    Ok(())
}

/// A cache and its model: the keys and values of every position, as stored.
struct Both<E> {
    cache: KvCache<E>,
    new: NewPosition<E>,
    rows: Vec<[Vec<f32>; 2]>,
    capacity: usize,
    rounding: CacheRounding,
}

impl<E: CacheElement> Both<E> {
    fn apply(&mut self, operation: Operation) {
        match operation {
            Operation::Append { seed, kind } => {
                let kind = Values::ALL[usize::from(kind) % Values::ALL.len()];
                self.append(self.row(seed, kind));
            }
            Operation::AppendMany { seed, count } => {
                for i in 0..usize::from(count) % (CHUNK + 10) {
                    self.append(self.row(seed.wrapping_add(i as u8), Values::Normal));
                }
            }
            Operation::Spoiled { seed, at, spoil } => {
                let mut row = self.row(seed, Values::Normal);
                let width = row[0].len();
                let spoil = Values::NON_FINITE[usize::from(spoil) % Values::NON_FINITE.len()];
                row[usize::from(at) / width % 2][usize::from(at) % width] = spoil;
                self.append(row);
            }
            Operation::Truncate(len) => {
                self.cache.truncate(len.into());
                self.rows.truncate(len.into());
            }
            Operation::Clear => {
                self.cache.clear();
                self.rows.clear();
            }
            Operation::Reserve(additional) => {
                let additional = usize::from(additional) % 600;
                self.cache.reserve(additional).unwrap();
                self.capacity = self.capacity.max(self.rows.len() + additional);
            }
            Operation::Huge(additional) => {
                let additional = usize::try_from(additional).unwrap() | 1 << 50;
                self.cache.reserve(additional).unwrap_err();
            }
            Operation::Read { head, position } => self.read(head.into(), position.into()),
            Operation::Attend { seed, window, with_new } => self.attend(seed, window, with_new),
        }
    }

    /// Keys and values of one position, of all KV heads.
    fn row(&self, seed: u8, kind: Values) -> [Vec<f32>; 2] {
        let width = self.cache.shape().n_kv_heads() * self.cache.shape().head_dim();
        let mut rng = Rng::new(seed.into());
        [kind.row(&mut rng, width), kind.row(&mut rng, width)]
    }

    /// Appends a row, if it can be stored; every level must round it alike.
    fn append(&mut self, row: [Vec<f32>; 2]) {
        let round = |row: &Vec<f32>| {
            let wide: Vec<f64> = row.iter().map(|x| f64::from(*x)).collect();
            self.rounding.round(&wide).map(|row| row.into_iter().map(|x| x as f32).collect())
        };
        let model: std::result::Result<Vec<Vec<f32>>, _> = row.iter().map(round).collect();
        for isa in Isa::available() {
            let set = self.new.set(isa, &row[0], &row[1]);
            assert_eq!(set.is_ok(), model.is_ok(), "{isa}: {set:?} instead of {model:?}");
            if let Ok(model) = &model {
                self.compare_new(model);
            }
        }
        let Ok(model) = model else { return };
        let result = self.cache.append(&self.new);
        if self.rows.len() == self.capacity {
            assert_eq!(result, Err(OpError::CacheFull { capacity: self.capacity }));
        } else {
            assert_eq!(result, Ok(()));
            let [keys, values] = model.try_into().expect("keys and values");
            self.rows.push([keys, values]);
        }
    }

    fn compare_new(&self, model: &[Vec<f32>]) {
        let head_dim = self.cache.shape().head_dim();
        let mut out = vec![f32::NAN; head_dim];
        for head in 0..self.cache.shape().n_kv_heads() {
            let of_head = head * head_dim..(head + 1) * head_dim;
            self.new.key(head, &mut out).unwrap();
            assert_eq!(bits(&out), bits(&model[0][of_head.clone()]));
            self.new.value(head, &mut out).unwrap();
            assert_eq!(bits(&out), bits(&model[1][of_head]));
        }
    }

    fn read(&self, head: usize, position: usize) {
        let shape = self.cache.shape();
        let mut out = vec![7.0; shape.head_dim()];
        let result = self.cache.key(head, position, &mut out);
        if position >= self.rows.len() || head >= shape.n_kv_heads() {
            assert!(result.is_err() && out.iter().all(|x| *x == 7.0));
            assert!(self.cache.value(head, position, &mut out).is_err());
            return;
        }
        let of_head = head * shape.head_dim()..(head + 1) * shape.head_dim();
        assert_eq!(bits(&out), bits(&self.rows[position][0][of_head.clone()]));
        self.cache.value(head, position, &mut out).unwrap();
        assert_eq!(bits(&out), bits(&self.rows[position][1][of_head]));
    }

    fn compare_everything(&self) {
        for position in 0..self.rows.len() {
            (0..self.cache.shape().n_kv_heads()).for_each(|head| self.read(head, position));
        }
    }

    /// Attention over this cache has, at every level, the bits of attention over one that never held
    /// anything else.
    fn attend(&mut self, seed: u8, window: u8, with_new: bool) {
        let shape = self.cache.shape();
        let n_heads = shape.n_kv_heads() * (1 + usize::from(seed % 3));
        let mut attention = Attention::new(n_heads, shape.n_kv_heads(), shape.head_dim()).unwrap();
        if window > 0 {
            attention = attention.with_window(window.into()).unwrap().with_sinks(3);
        }
        let mut fresh = KvCache::<E>::with_capacity(shape, self.rows.len()).unwrap();
        let mut new = NewPosition::<E>::new(shape).unwrap();
        for [keys, values] in &self.rows {
            new.set(Isa::Scalar, keys, values).unwrap();
            fresh.append(&new).unwrap();
        }
        let new = with_new.then_some(&self.new);
        let q = Values::Normal.row(&mut Rng::new(seed.into()), n_heads * shape.head_dim());
        let mut scratch = AttendScratch::new(&attention).unwrap();
        let mut attend = |isa, cache: &KvCache<E>| {
            let mut out = vec![7.0; q.len()];
            let result = flash_decode(isa, &attention, cache, new, &q, &mut scratch, &mut out);
            (format!("{result:?}"), bits(&out))
        };
        let expected = attend(Isa::Scalar, &fresh);
        for isa in Isa::available() {
            assert_eq!(attend(isa, &self.cache), expected, "{isa}");
        }
    }
}
