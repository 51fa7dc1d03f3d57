use super::*;
use crate::testing::Case;
use ck_testing::generate::{Quants, Rng, Scales, sizes};

/// A panel block holds the very quants and scales of its rows.
#[test]
fn every_quant_and_scale_is_in_its_place() {
    let mut rng = Rng::new(11);
    for format in Case::FORMATS {
        for rows in sizes::ROWS {
            let case = Case::random(format, &mut rng, (rows, 3), Scales::AnyFinite, Quants::Any);
            let packed = PackedMatrix::pack(case.matrix()).unwrap();
            match (packed.panels(), case.matrix().blocks()) {
                (AnyPanels::Q5_0(panels), Blocks::Q5_0(blocks)) => {
                    check_panels(panels, blocks, rows, 3);
                }
                (AnyPanels::Q8_0(panels), Blocks::Q8_0(blocks)) => {
                    check_panels(panels, blocks, rows, 3);
                }
                _ => panic!("packing keeps the format"),
            }
        }
    }
}

fn check_panels<P: PanelBlock>(
    panels: Panels<'_, P>,
    blocks: &[P::Block],
    rows: usize,
    per_row: usize,
) {
    for row in 0..rows.next_multiple_of(PANEL_ROWS) {
        let (quants, scales) = panels.panel(row / PANEL_ROWS, 0..per_row);
        for block in 0..per_row {
            let lane = row % PANEL_ROWS;
            if row >= rows {
                assert_eq!(scales[block][lane].to_bits(), 0, "padding row {row}");
                continue;
            }
            let original = &blocks[row * per_row + block];
            assert_eq!(scales[block][lane].to_bits(), original.scale().to_bits());
            let unpacked: Vec<i32> = (0..BLOCK_LEN)
                .map(|j| i32::from(quants[block].group(j / 4)[4 * lane + j % 4]) - P::OFFSET)
                .collect();
            assert_eq!(unpacked, original.quants().map(i32::from), "row {row}, block {block}");
        }
    }
}

/// Shapes of models, one row too many, few rows, and a matrix of five and a half large pages.
const SHAPES: [(usize, usize); 7] =
    [(576, 576), (192, 576), (896, 896), (128, 896), (897, 64), (161, 32), (4096, 4096)];

#[test]
fn packing_costs_less_than_a_tenth_more_memory() {
    for format in Case::FORMATS {
        for (rows, columns) in SHAPES {
            let bytes = vec![0; format.matrix_bytes(rows, columns).unwrap()];
            let matrix = Matrix::new(format, rows, columns, &bytes).unwrap();
            let packed = PackedMatrix::pack(matrix).unwrap();
            let allowed = bytes.len()..bytes.len() / 10 * 11;
            assert!(allowed.contains(&packed.bytes()), "{format} {rows}x{columns}: {packed:?}");
            let whole = format.matrix_bytes(rows.next_multiple_of(PANEL_ROWS), columns).unwrap();
            assert_eq!(packed.pages.len(), whole, "nothing but the rows is padded");
        }
    }
}

/// Large enough to be packed in parallel, where that is built.
#[test]
fn a_large_matrix_is_packed_like_a_small_one() {
    let mut rng = Rng::new(12);
    let (rows, blocks) = (331, 160);
    let case = Case::random(Format::Q5_0, &mut rng, (rows, blocks), Scales::Weights, Quants::Any);
    let packed = PackedMatrix::pack(case.matrix()).unwrap();
    let AnyPanels::Q5_0(panels) = packed.panels() else { panic!("packing keeps the format") };
    let Blocks::Q5_0(all) = case.matrix().blocks() else { panic!("the case is Q5_0") };
    check_panels(panels, all, rows, blocks);
}

#[test]
fn a_packed_matrix_can_be_shared_among_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<PackedMatrix>();
}

#[test]
fn rows_without_columns_take_no_memory_however_many_there_are() {
    let x = QuantizedVector::zeros(0).unwrap();
    for format in [Format::Q5_0, Format::Q8_0] {
        let matrix = Matrix::new(format, usize::MAX, 0, &[]).unwrap();
        let packed = PackedMatrix::pack(matrix).unwrap();
        assert!(packed.bytes() <= 64, "{} bytes", packed.bytes());
        for isa in Isa::available() {
            for weights in [Weights::from(matrix), Weights::from(&packed)] {
                let mut out = [f32::NAN; 3];
                weights.gemv(isa, &x, usize::MAX - 3..usize::MAX, &mut out).unwrap();
                assert_eq!(out.map(f32::to_bits), [0; 3], "{isa}");
            }
        }
    }
}
