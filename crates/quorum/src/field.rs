//! Finite fields, for projective planes.

use alloc::vec;
use alloc::vec::Vec;

/// The orders of fields that are no primes: the prime, and the monic irreducible polynomial without
/// its leading coefficient, lowest coefficient first.
const EXTENSIONS: &[(usize, usize, &[usize])] = &[
    (4, 2, &[1, 1]),
    (8, 2, &[1, 1, 0]),
    (9, 3, &[1, 0]),
    (16, 2, &[1, 1, 0, 0]),
    (25, 5, &[2, 0]),
    (27, 3, &[1, 2, 0]),
    (32, 2, &[1, 0, 1, 0, 0]),
];

/// A finite field as tables. An element is a number whose digits to the base of the prime are the
/// coefficients of a polynomial.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    order: usize,
    sums: Vec<usize>,
    products: Vec<usize>,
}

impl Field {
    /// The field of this order; none if there is none, or none in the table.
    pub(crate) fn new(order: usize) -> Option<Self> {
        let (prime, rest): (usize, &[usize]) = if is_prime(order) {
            (order, &[0])
        } else {
            let &(_, prime, rest) = EXTENSIONS.iter().find(|(known, ..)| *known == order)?;
            (prime, rest)
        };
        let digits = |number| split(number, prime, rest.len());
        let mut field = Self { order, sums: Vec::new(), products: Vec::new() };
        for a in 0..order {
            for b in 0..order {
                let (a, b) = (digits(a), digits(b));
                let sum: Vec<_> = a.iter().zip(&b).map(|(a, b)| (a + b) % prime).collect();
                field.sums.push(join(&sum, prime));
                field.products.push(join(&product(&a, &b, prime, rest), prime));
            }
        }
        Some(field)
    }

    pub(crate) fn add(&self, a: usize, b: usize) -> usize {
        self.sums[a * self.order + b]
    }

    pub(crate) fn multiply(&self, a: usize, b: usize) -> usize {
        self.products[a * self.order + b]
    }
}

fn is_prime(number: usize) -> bool {
    number > 1 && (2..number).take_while(|d| d * d <= number).all(|d| !number.is_multiple_of(d))
}

fn split(mut number: usize, base: usize, length: usize) -> Vec<usize> {
    let mut digits = Vec::with_capacity(length);
    for _ in 0..length {
        digits.push(number % base);
        number /= base;
    }
    digits
}

fn join(digits: &[usize], base: usize) -> usize {
    digits.iter().rev().fold(0, |number, digit| number * base + digit)
}

/// The product of two polynomials, reduced: x^m is minus the rest of the irreducible polynomial.
fn product(a: &[usize], b: &[usize], prime: usize, rest: &[usize]) -> Vec<usize> {
    let degree = rest.len();
    let mut product = vec![0; 2 * degree];
    for (i, x) in a.iter().enumerate() {
        for (j, y) in b.iter().enumerate() {
            product[i + j] = (product[i + j] + x * y) % prime;
        }
    }
    for high in (degree..2 * degree).rev() {
        let factor = core::mem::take(&mut product[high]);
        for (i, coefficient) in rest.iter().enumerate() {
            let low = &mut product[high - degree + i];
            *low = (*low + (prime - coefficient % prime) * factor) % prime;
        }
    }
    product.truncate(degree);
    product
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;

    #[test]
    fn every_field_has_inverses_and_distributes() {
        for order in 2..=32 {
            let Some(field) = Field::new(order) else { continue };
            for a in 0..order {
                let sums: BTreeSet<_> = (0..order).map(|b| field.add(a, b)).collect();
                assert_eq!(sums.len(), order);
                let products: BTreeSet<_> = (0..order).map(|b| field.multiply(a, b)).collect();
                assert_eq!(products.len(), if a == 0 { 1 } else { order }, "{a} of {order}");
                for b in 0..order {
                    let c = (a + 2 * b + 1) % order;
                    let left = field.multiply(c, field.add(a, b));
                    let right = field.add(field.multiply(c, a), field.multiply(c, b));
                    assert_eq!(left, right, "{order}: {a} {b} {c}");
                }
            }
        }
    }

    #[test]
    fn fields_are_of_prime_powers() {
        let orders: Vec<_> = (2..=32).filter(|&order| Field::new(order).is_some()).collect();
        assert_eq!(orders, [2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 23, 25, 27, 29, 31, 32]);
    }
}
