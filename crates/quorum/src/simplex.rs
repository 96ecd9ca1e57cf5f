//! Linear programs in exact arithmetic, of the one form that loads need.
//!
//! Whole numbers over one common denominator, which is the last pivot (Edmonds): the entries are
//! minors of the matrix, so they stay small where floating point would have to guess. Bland's rule
//! keeps it from going round in circles.

use alloc::vec;
use alloc::vec::Vec;

use num_rational::Ratio;

/// The best there is, and the proof.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Solution {
    pub(crate) value: Ratio<i128>,
    /// By column: how much of it.
    pub(crate) amounts: Vec<Ratio<i128>>,
    /// By row: its price. Every column costs at least 1, and all rows together cost the value.
    pub(crate) prices: Vec<Ratio<i128>>,
}

/// Why there is no solution.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unsolved {
    /// Numbers beyond 127 bits.
    Overflow,
    /// More work than allowed.
    Work,
}

/// Maximises the sum of amounts of columns such that no row has more than its bound.
pub(crate) fn maximise(
    columns: &[Vec<u64>],
    bounds: &[u64],
    work_max: u64,
) -> Result<Solution, Unsolved> {
    let mut tableau = Tableau::new(columns, bounds);
    let mut work = 0;
    while let Some(column) = tableau.entering() {
        let row = tableau.leaving(column)?;
        tableau.pivot(row, column)?;
        work += tableau.cells.len() as u64;
        if work > work_max {
            return Err(Unsolved::Work);
        }
    }
    Ok(tableau.solution())
}

struct Tableau {
    rows: usize,
    columns: usize,
    /// Row by row, each with its right side at the end; the last row is the objective.
    cells: Vec<i128>,
    /// What all cells are divided by.
    divisor: i128,
    /// By row: the variable that it says. Columns come first, then what is left of rows.
    basic: Vec<usize>,
    /// By column: the variable that is 0.
    free: Vec<usize>,
}

impl Tableau {
    fn new(columns: &[Vec<u64>], bounds: &[u64]) -> Self {
        let (rows, count) = (bounds.len(), columns.len());
        let mut cells = Vec::with_capacity((rows + 1) * (count + 1));
        for (row, &bound) in bounds.iter().enumerate() {
            cells.extend(columns.iter().map(|column| i128::from(column[row])));
            cells.push(i128::from(bound));
        }
        cells.extend(core::iter::repeat_n(-1, count));
        cells.push(0);
        let basic = (count..count + rows).collect();
        Self { rows, columns: count, cells, divisor: 1, basic, free: (0..count).collect() }
    }

    fn at(&self, row: usize, column: usize) -> i128 {
        self.cells[row * (self.columns + 1) + column]
    }

    /// The column to use more of: of those that pay, the one of the smallest variable.
    fn entering(&self) -> Option<usize> {
        let pays = |&column: &usize| self.at(self.rows, column) < 0;
        (0..self.columns).filter(pays).min_by_key(|&column| self.free[column])
    }

    /// The row that limits it most; of equal ones, that of the smallest variable.
    fn leaving(&self, column: usize) -> Result<usize, Unsolved> {
        let mut best: Option<usize> = None;
        for row in (0..self.rows).filter(|&row| self.at(row, column) > 0) {
            let Some(other) = best else {
                best = Some(row);
                continue;
            };
            let (right, left) = (self.at(row, self.columns), self.at(other, self.columns));
            let here = right.checked_mul(self.at(other, column)).ok_or(Unsolved::Overflow)?;
            let there = left.checked_mul(self.at(row, column)).ok_or(Unsolved::Overflow)?;
            if (here, self.basic[row]) < (there, self.basic[other]) {
                best = Some(row);
            }
        }
        Ok(best.expect("every quorum has a node, so that its amount is bounded"))
    }

    /// Exchanges the variables of a row and a column.
    fn pivot(&mut self, row: usize, column: usize) -> Result<(), Unsolved> {
        let width = self.columns + 1;
        let pivot = self.at(row, column);
        let pivot_row = self.cells[row * width..(row + 1) * width].to_vec();
        for other in (0..=self.rows).filter(|&other| other != row) {
            let factor = self.at(other, column);
            let cells = &mut self.cells[other * width..(other + 1) * width];
            for (at, cell) in cells.iter_mut().enumerate() {
                let scaled = cell.checked_mul(pivot).ok_or(Unsolved::Overflow)?;
                let taken = factor.checked_mul(pivot_row[at]).ok_or(Unsolved::Overflow)?;
                *cell = scaled.checked_sub(taken).ok_or(Unsolved::Overflow)? / self.divisor;
            }
            cells[column] = -factor;
        }
        self.cells[row * width + column] = self.divisor;
        self.divisor = pivot;
        core::mem::swap(&mut self.basic[row], &mut self.free[column]);
        Ok(())
    }

    fn solution(&self) -> Solution {
        let zero = Ratio::from_integer(0);
        let mut amounts = vec![zero; self.columns];
        let mut prices = vec![zero; self.rows];
        for (row, &variable) in self.basic.iter().enumerate() {
            if variable < self.columns {
                amounts[variable] = Ratio::new(self.at(row, self.columns), self.divisor);
            }
        }
        for (column, &variable) in self.free.iter().enumerate() {
            if variable >= self.columns {
                prices[variable - self.columns] =
                    Ratio::new(self.at(self.rows, column), self.divisor);
            }
        }
        let value = Ratio::new(self.at(self.rows, self.columns), self.divisor);
        Solution { value, amounts, prices }
    }
}
