// The functions that generated kernels call. `library.py` reads this file and writes what a kernel needs.
//
// A function is written once for scalars and vectors of four: the words F I U B stand for f32 i32 u32 bool,
// and L M D for i64 u64 f64, or for vectors of them; its name gets the suffix _1 or _4, also where another
// function calls it. A function whose head has none of these words exists once, as it stands. A function
// begins with `fn` and ends with `}` in the first column.
//
// Compilers assume that there is no NaN (x != x is false, max() drops it) and add constants to each other
// first: NaN is found by its bits, and numbers are split by masks, which no compiler sees through. Neither
// a fused multiply-add nor its absence is relied on. Polynomials are minimax fits over the interval that is
// named.

// Special values

fn wg_infinity() -> F {
    let bits = U(0x7f800000u); // a run-time value: a constant infinity is refused
    return bitcast<F>(bits);
}
fn wg_not_a_number() -> F {
    let bits = U(0x7fc00000u);
    return bitcast<F>(bits);
}
fn wg_size_bits(x: F) -> U { return bitcast<U>(x) & U(0x7fffffffu); }
fn wg_isnan(x: F) -> B { return wg_size_bits(x) > U(0x7f800000u); }
fn wg_isinf(x: F) -> B { return wg_size_bits(x) == U(0x7f800000u); }
fn wg_isfinite(x: F) -> B { return wg_size_bits(x) < U(0x7f800000u); }
fn wg_size_bits_f64(x: D) -> M { return bitcast<M>(x) & M(0x7ffffffffffffffflu); }
fn wg_isnan_f64(x: D) -> B { return wg_size_bits_f64(x) > M(0x7ff0000000000000lu); }
fn wg_isinf_f64(x: D) -> B { return wg_size_bits_f64(x) == M(0x7ff0000000000000lu); }
fn wg_isfinite_f64(x: D) -> B { return wg_size_bits_f64(x) < M(0x7ff0000000000000lu); }
fn wg_keep_nan(x: F, result: F) -> F { return select(result, x, wg_isnan(x)); }
// 0 with x's sign where x is 0.
fn wg_keep_zero(x: F, result: F) -> F { return select(result, x, wg_size_bits(x) == U(0u)); }
fn wg_keep_nan_f64(x: D, result: D) -> D { return select(result, x, wg_isnan_f64(x)); }
fn wg_with_sign(size: F, sign: F) -> F {
    return bitcast<F>(wg_size_bits(size) | (bitcast<U>(sign) & U(0x80000000u)));
}
// x as it is computed here: Mesa adds a·b + c + d·e in another order, but not across min() or clamp().
fn wg_settled(x: F) -> F { return min(x, F(1e30)); }
// The upper 12 bits of a number's 24: the product of two such is exact.
fn wg_upper(x: F) -> F { return bitcast<F>(bitcast<U>(x) & U(0xfffff000u)); }

// Arithmetic

fn wg_negative(x: F) -> F { return bitcast<F>(bitcast<U>(x) ^ U(0x80000000u)); }
fn wg_abs(x: F) -> F { return bitcast<F>(wg_size_bits(x)); }
fn wg_sign(x: F) -> F { return wg_keep_nan(x, sign(x)); }
fn wg_sign_u32(x: U) -> U { return min(x, U(1u)); }
fn wg_sign_u64(x: M) -> M { return min(x, M(1lu)); }
fn wg_sign_f64(x: D) -> D { return wg_keep_nan_f64(x, sign(x)); }
// x - x, which compilers take for 0 even where it is not.
fn wg_own_difference(x: F) -> F {
    return select(F(0.0), wg_not_a_number(), wg_size_bits(x) >= U(0x7f800000u));
}
fn wg_maximum(a: F, b: F) -> F { return wg_keep_nan(a, wg_keep_nan(b, max(a, b))); }
fn wg_minimum(a: F, b: F) -> F { return wg_keep_nan(a, wg_keep_nan(b, min(a, b))); }
fn wg_maximum_f64(a: D, b: D) -> D { return wg_keep_nan_f64(a, wg_keep_nan_f64(b, max(a, b))); }
fn wg_minimum_f64(a: D, b: D) -> D { return wg_keep_nan_f64(a, wg_keep_nan_f64(b, min(a, b))); }

fn wg_floor_divide_i32(a: I, b: I) -> I {
    let zero = b == I(0);
    let divisor = select(b, I(1), zero);
    let quotient = a / divisor;
    let rest = a - quotient * divisor;
    let down = (rest != I(0)) & ((rest ^ divisor) < I(0));
    return select(quotient - select(I(0), I(1), down), I(0), zero);
}
fn wg_remainder_i32(a: I, b: I) -> I {
    let divisor = select(b, I(1), b == I(0));
    let rest = a - a / divisor * divisor; // GLSL leaves % of negative numbers open: test_library.py
    return rest + select(I(0), divisor, (rest != I(0)) & ((rest ^ divisor) < I(0)));
}
fn wg_floor_divide_u32(a: U, b: U) -> U {
    let zero = b == U(0u);
    return select(a / select(b, U(1u), zero), U(0u), zero);
}
fn wg_remainder_u32(a: U, b: U) -> U { return a % select(b, U(1u), b == U(0u)); }
// The lowest number divided by -1 stops a processor: -1 is kept from the division.
fn wg_floor_divide_i64(a: L, b: L) -> L {
    let zero = b == L(0li);
    let minus = b == L(-1li);
    let divisor = select(b, L(1li), zero | minus);
    let quotient = a / divisor;
    let rest = a - quotient * divisor;
    let down = (rest != L(0li)) & ((rest ^ divisor) < L(0li));
    let result = quotient - select(L(0li), L(1li), down);
    return select(select(result, -a, minus), L(0li), zero);
}
fn wg_remainder_i64(a: L, b: L) -> L {
    let divisor = select(b, L(1li), (b == L(0li)) | (b == L(-1li)));
    let rest = a - (a / divisor) * divisor;
    return rest + select(L(0li), divisor, (rest != L(0li)) & ((rest ^ divisor) < L(0li)));
}
fn wg_floor_divide_u64(a: M, b: M) -> M {
    let zero = b == M(0lu);
    return select(a / select(b, M(1lu), zero), M(0lu), zero);
}
fn wg_remainder_u64(a: M, b: M) -> M { return a % select(b, M(1lu), b == M(0lu)); }

// |a| modulo |b|, exactly: long division of the mantissas, eight bits of the quotient a step.
fn wg_modulo(a: F, b: F) -> F {
    let number = wg_size_bits(a);
    let by = wg_size_bits(b);
    let exponent = max(by >> U(23u), U(1u));
    let divisor = max((by & U(0x7fffffu)) | select(U(0u), U(0x800000u), by >= U(0x800000u)), U(1u));
    var left = max(bitcast<I>(max(number >> U(23u), U(1u))) - bitcast<I>(exponent), I(0));
    var rest = ((number & U(0x7fffffu)) | select(U(0u), U(0x800000u), number >= U(0x800000u))) % divisor;
    while (any(left > I(0))) {
        let step = min(left, I(8));
        rest = (rest << bitcast<U>(step)) % divisor;
        left -= step;
    }
    let shift = min(countLeadingZeros(rest) - U(8u), exponent - U(1u));
    let bits = ((exponent - shift - U(1u)) << U(23u)) + (rest << shift);
    return bitcast<F>(select(select(bits, U(0u), rest == U(0u)), number, number < by));
}
fn wg_remainder(a: F, b: F) -> F {
    let rest = wg_modulo(a, b);
    let across = (wg_size_bits(rest) != U(0u)) & (bitcast<I>(bitcast<U>(a) ^ bitcast<U>(b)) < I(0));
    let result = wg_with_sign(select(rest, wg_abs(b) - rest, across), b);
    let by = wg_size_bits(b);
    let undivided = (wg_size_bits(a) >= U(0x7f800000u)) | (by > U(0x7f800000u)) | (by == U(0u));
    return select(result, wg_not_a_number(), undivided);
}
// Where one is infinite or NaN, or b is 0, a / b; else the sign, also of 0, is that of a / b.
fn wg_floor_divide(a: F, b: F) -> F {
    let rest = wg_modulo(a, b);
    let signs = bitcast<U>(a) ^ bitcast<U>(b);
    let across = (wg_size_bits(rest) != U(0u)) & (bitcast<I>(signs) < I(0));
    let quotient = round((a - wg_with_sign(rest, a)) / b) - select(F(0.0), F(1.0), across);
    let by = wg_size_bits(b);
    let undivided = (max(wg_size_bits(a), by) >= U(0x7f800000u)) | (by == U(0u));
    return select(wg_with_sign(quotient, bitcast<F>(signs)), a / b, undivided);
}

fn wg_power_i32(base: I, exponent: I) -> I {
    let below = exponent < I(0);
    var left = bitcast<U>(exponent) & select(U(0xffffffffu), U(1u), below);
    var square = base;
    var result = I(1);
    while (any(left != U(0u))) {
        result = select(result, result * square, (left & U(1u)) != U(0u));
        square *= square;
        left = left >> U(1u);
    }
    return select(result, I(0), below & (abs(base) != I(1)));
}
fn wg_power_u32(base: U, exponent: U) -> U {
    var left = exponent;
    var square = base;
    var result = U(1u);
    while (any(left != U(0u))) {
        result = select(result, result * square, (left & U(1u)) != U(0u));
        square *= square;
        left = left >> U(1u);
    }
    return result;
}
fn wg_power_u64(base: M, exponent: M) -> M {
    var left = exponent;
    var square = base;
    var result = M(1lu);
    while (any(left != M(0lu))) {
        result = select(result, result * square, (left & M(1lu)) != M(0lu));
        square *= square;
        left = left >> U(1u);
    }
    return result;
}
fn wg_power_i64(base: L, exponent: L) -> L {
    let below = exponent < L(0li);
    let left = bitcast<M>(exponent) & select(M(0xfffffffffffffffflu), M(1lu), below);
    let result = bitcast<L>(wg_power_u64(bitcast<M>(base), left));
    return select(result, L(0li), below & (abs(base) != L(1li)));
}

// Comparison: false, or for not_equal true, where either is NaN, also after a compiler has turned it round.

fn wg_ordered(a: F, b: F) -> B { return max(wg_size_bits(a), wg_size_bits(b)) <= U(0x7f800000u); }
fn wg_equal(a: F, b: F) -> B { return (a == b) & wg_ordered(a, b); }
fn wg_not_equal(a: F, b: F) -> B { return !((a == b) & wg_ordered(a, b)); }
fn wg_less(a: F, b: F) -> B { return (a < b) & wg_ordered(a, b); }
fn wg_less_equal(a: F, b: F) -> B { return (a <= b) & wg_ordered(a, b); }
fn wg_greater(a: F, b: F) -> B { return (a > b) & wg_ordered(a, b); }
fn wg_greater_equal(a: F, b: F) -> B { return (a >= b) & wg_ordered(a, b); }
fn wg_ordered_f64(a: D, b: D) -> B { return !(wg_isnan_f64(a) | wg_isnan_f64(b)); }
fn wg_equal_f64(a: D, b: D) -> B { return (a == b) & wg_ordered_f64(a, b); }
fn wg_not_equal_f64(a: D, b: D) -> B { return !((a == b) & wg_ordered_f64(a, b)); }
fn wg_less_f64(a: D, b: D) -> B { return (a < b) & wg_ordered_f64(a, b); }
fn wg_less_equal_f64(a: D, b: D) -> B { return (a <= b) & wg_ordered_f64(a, b); }
fn wg_greater_f64(a: D, b: D) -> B { return (a > b) & wg_ordered_f64(a, b); }
fn wg_greater_equal_f64(a: D, b: D) -> B { return (a >= b) & wg_ordered_f64(a, b); }

// Shifts: by the width or more, or by a negative number, nothing but the sign is left.

fn wg_left_shift_i32(a: I, by: I) -> I {
    let count = bitcast<U>(by);
    return select(a << (count & U(31u)), I(0), count > U(31u));
}
fn wg_left_shift_u32(a: U, by: U) -> U { return select(a << (by & U(31u)), U(0u), by > U(31u)); }
fn wg_left_shift_i64(a: L, by: L) -> L {
    return select(a << (U(by) & U(63u)), L(0li), bitcast<M>(by) > M(63lu));
}
fn wg_left_shift_u64(a: M, by: M) -> M { return select(a << (U(by) & U(63u)), M(0lu), by > M(63lu)); }
fn wg_right_shift_i32(a: I, by: I) -> I { return a >> min(bitcast<U>(by), U(31u)); }
fn wg_right_shift_u32(a: U, by: U) -> U { return select(a >> (by & U(31u)), U(0u), by > U(31u)); }
fn wg_right_shift_i64(a: L, by: L) -> L { return a >> U(min(bitcast<M>(by), M(63lu))); }
fn wg_right_shift_u64(a: M, by: M) -> M { return select(a >> (U(by) & U(63u)), M(0lu), by > M(63lu)); }

// Random bits: Threefry-2x32 with 20 rounds.

fn wg_rotate(x: U, by: U) -> U { return (x << by) | (x >> (U(32u) - by)); }
fn wg_random_bits(counter: U, key0: U, key1: U) -> U {
    let key2 = key0 ^ key1 ^ U(0x1bd11bdau);
    var x = counter + key0;
    var y = key1;
    x += y; y = wg_rotate(y, U(13u)) ^ x;
    x += y; y = wg_rotate(y, U(15u)) ^ x;
    x += y; y = wg_rotate(y, U(26u)) ^ x;
    x += y; y = wg_rotate(y, U(6u)) ^ x;
    x += key1; y += key2 + U(1u);
    x += y; y = wg_rotate(y, U(17u)) ^ x;
    x += y; y = wg_rotate(y, U(29u)) ^ x;
    x += y; y = wg_rotate(y, U(16u)) ^ x;
    x += y; y = wg_rotate(y, U(24u)) ^ x;
    x += key2; y += key0 + U(2u);
    x += y; y = wg_rotate(y, U(13u)) ^ x;
    x += y; y = wg_rotate(y, U(15u)) ^ x;
    x += y; y = wg_rotate(y, U(26u)) ^ x;
    x += y; y = wg_rotate(y, U(6u)) ^ x;
    x += key0; y += key1 + U(3u);
    x += y; y = wg_rotate(y, U(17u)) ^ x;
    x += y; y = wg_rotate(y, U(29u)) ^ x;
    x += y; y = wg_rotate(y, U(16u)) ^ x;
    x += y; y = wg_rotate(y, U(24u)) ^ x;
    x += key1; y += key2 + U(4u);
    x += y; y = wg_rotate(y, U(13u)) ^ x;
    x += y; y = wg_rotate(y, U(15u)) ^ x;
    x += y; y = wg_rotate(y, U(26u)) ^ x;
    x += y;
    y = wg_rotate(y, U(6u)) ^ x;
    return x + key2;
}

// Exponentials

// A whole number of at most 22 bits as an integer; I(x) would be guarded against overflow.
fn wg_whole(x: F) -> I { return bitcast<I>(x + F(12582912.0)) - I(0x4b400000); }
// x 2^n for x from 0.7 to 1.5 and n from -151 to 128; 0 below 2^-126, as subnormal numbers are on many GPUs.
fn wg_scale(x: F, n: I) -> F {
    let bits = min(bitcast<I>(x) + (n << U(23u)), I(0x7f800000));
    return bitcast<F>(select(bits, I(0), bits < I(0x00800000)));
}
// exp(r) - 1 for |r| <= log(2) / 2.
fn wg_exp_tail(r: F) -> F {
    let high = F(0.0416677408) + r * (F(0.00836731866) + r * F(0.00138378609));
    return r + (r * r) * (F(0.49999997) + r * (F(0.166665375) + r * high));
}
// factor 2^up exp(x + rest), where `rest` is small and the exponential times 2^up a normal number: one
// rounding less than a product with wg_exp. x must be settled if it is a product.
fn wg_exp_times(factor: F, up: I, x: F, rest: F) -> F {
    let n = round((x + rest) * F(1.44269502));
    let r = (x - n * F(0.693359375)) + (n * F(0.000212194442) + rest);
    let power = bitcast<F>(((wg_whole(n) + up) << U(23u)) + I(0x3f800000));
    return (factor + factor * wg_exp_tail(r)) * power;
}
fn wg_exp(x: F) -> F {
    let inside = clamp(x, F(-104.0), F(89.0));
    let n = round(inside * F(1.44269502));
    let r = (inside - n * F(0.693359375)) + n * F(0.000212194442);
    return wg_keep_nan(x, wg_scale(F(1.0) + wg_exp_tail(r), wg_whole(n)));
}
fn wg_exp2(x: F) -> F {
    let inside = clamp(x, F(-151.0), F(128.0));
    let n = round(inside);
    return wg_keep_nan(x, wg_scale(F(1.0) + wg_exp2_tail(inside - n), wg_whole(n)));
}
// 2^r - 1 for |r| <= 0.501.
fn wg_exp2_tail(r: F) -> F {
    let high = F(0.00962542463) + r * (F(0.00133878354) + r * F(0.000133366892));
    return r * (F(0.693147182) + r * (F(0.240225941) + r * (F(0.0555036627) + r * high)));
}
fn wg_expm1(x: F) -> F {
    let inside = clamp(x, F(-26.0), F(89.0));
    let n = round(inside * F(1.44269502));
    let r = (inside - n * F(0.693359375)) + n * F(0.000212194442);
    let half = bitcast<F>((wg_whole(n) << U(23u)) + I(0x3f000000)); // 2^(n - 1): 2^n may be out of range
    let result = (half * wg_exp_tail(r) + (half - F(0.5))) * F(2.0);
    return wg_keep_nan(x, select(result, x, abs(x) < F(1e-30)));
}
fn wg_sigmoid(x: F) -> F {
    let small = wg_exp(-abs(x));
    return select(F(1.0), small, x < F(0.0)) / (F(1.0) + small);
}
fn wg_sinh(x: F) -> F {
    let size = abs(x);
    let half = wg_exp_times(F(2.0), I(-2), min(size, F(89.5)), F(0.0));
    let z = x * x;
    let near = size + size * z * (F(0.166667193) + z * (F(0.0083301682) + z * F(0.000203811214)));
    let result = select(half - F(0.25) / half, near, size < F(1.0));
    return wg_keep_nan(x, wg_with_sign(result, x));
}
fn wg_cosh(x: F) -> F {
    let half = wg_exp_times(F(2.0), I(-2), min(abs(x), F(89.5)), F(0.0));
    return wg_keep_nan(x, half + F(0.25) / half);
}
fn wg_tanh(x: F) -> F {
    let size = abs(x);
    let far = F(1.0) - F(2.0) / (wg_exp_times(F(1.0), I(0), min(size * F(2.0), F(20.0)), F(0.0)) + F(1.0));
    let z = x * x;
    let high = F(-0.0537539572) + z * (F(0.0206783414) - z * F(0.00574325351));
    let near = size + size * z * (F(-0.333332926) + z * (F(0.133316547) + z * high));
    return wg_keep_nan(x, wg_with_sign(select(far, near, size < F(0.625)), x));
}

// Logarithms

// log(1 + f) + k log(2), for 1 + f from sqrt(1/2) to sqrt(2).
fn wg_log_sum(f: F, k: F) -> F {
    let z = f * f;
    let high = F(0.142001852) + f * (F(-0.131504014) + f * (F(0.127970144) - f * F(0.0776164159)));
    let p = F(0.333333313) + f * (F(-0.250008225) + f * (F(0.200012609) + f * (F(-0.166233361) + f * high)));
    let tail = (f * z * p - F(0.5) * z) - k * F(0.000212194442);
    return (f + tail) + k * F(0.693359375);
}
// The bits of a positive number (of a subnormal one times 2^149), moved so that the exponent is k + 127 for
// 2^k m, m from sqrt(1/2) to sqrt(2).
fn wg_log_bits(x: F) -> U {
    let bits = bitcast<U>(x);
    return select(bits, bitcast<U>(F(bits)), bits < U(0x00800000u)) + U(0x004afb0du);
}
fn wg_log_mantissa(bits: U) -> F { return bitcast<F>((bits & U(0x007fffffu)) + U(0x3f3504f3u)); }
fn wg_log_exponent(x: F, bits: U) -> F {
    return F(bitcast<I>(bits >> U(23u)) - select(I(127), I(276), bitcast<U>(x) < U(0x00800000u)));
}
// A logarithm's value where x is not a positive number.
fn wg_log_ends(x: F, result: F) -> F {
    let bits = bitcast<U>(x);
    let above = select(result, x, bits >= U(0x7f800000u)); // infinity and NaN
    let below = select(above, wg_not_a_number(), bits > U(0x80000000u));
    return select(below, -wg_infinity(), wg_size_bits(x) == U(0u));
}
fn wg_log(x: F) -> F {
    let bits = wg_log_bits(x);
    return wg_log_ends(x, wg_log_sum(wg_log_mantissa(bits) - F(1.0), wg_log_exponent(x, bits)));
}
fn wg_log2(x: F) -> F {
    let bits = wg_log_bits(x);
    let near = wg_log_sum(wg_log_mantissa(bits) - F(1.0), F(0.0));
    return wg_log_ends(x, near * F(1.44269502) + wg_log_exponent(x, bits));
}
fn wg_log10(x: F) -> F {
    let bits = wg_log_bits(x);
    let k = wg_log_exponent(x, bits);
    let near = wg_log_sum(wg_log_mantissa(bits) - F(1.0), F(0.0));
    return wg_log_ends(x, (near * F(0.434294492) + k * F(4.60503907e-6)) + k * F(0.301025391));
}
// Where 1 + x needs no scaling, x itself is the exact argument.
fn wg_log1p(x: F) -> F {
    let sum = F(1.0) + x;
    let bits = wg_log_bits(sum);
    let k = wg_log_exponent(sum, bits);
    let result = wg_log_ends(sum, wg_log_sum(select(wg_log_mantissa(bits) - F(1.0), x, k == F(0.0)), k));
    return wg_keep_zero(x, result);
}
fn wg_asinh(x: F) -> F {
    let size = abs(x);
    let far = size > F(1e9);
    let z = size * size;
    let near = size + z / (F(1.0) + sqrt(F(1.0) + z));
    let result = wg_log1p(select(near, size, far)) + select(F(0.0), F(0.693147182), far);
    return wg_keep_nan(x, wg_with_sign(result, x));
}
fn wg_acosh(x: F) -> F {
    let far = x > F(1e9);
    let over = x - F(1.0);
    let near = over + wg_sqrt(over * (over + F(2.0)));
    let result = wg_log1p(select(near, x, far)) + select(F(0.0), F(0.693147182), far);
    return wg_keep_nan(x, select(result, wg_not_a_number(), x < F(1.0)));
}
fn wg_atanh(x: F) -> F {
    let size = abs(x);
    let result = F(0.5) * wg_log1p((size + size) / (F(1.0) - size));
    return wg_keep_nan(x, wg_with_sign(result, x));
}

// Powers and roots

fn wg_sqrt(x: F) -> F { return select(sqrt(x), wg_not_a_number(), x < F(0.0)); }
fn wg_rsqrt(x: F) -> F { return F(1.0) / wg_sqrt(x); }
// |x|^y as 2^(y log2|x|). With |x| = 2^k m, c near m and s = (m - c) / (m + c), log2|x| is
// k + log2(c) + 2/log(2) (s + s³/3 + …), kept as a sum: s, its product and the whole have exact upper parts.
fn wg_power_size(x: F, y: F) -> F {
    let size = wg_abs(x);
    let bits = wg_log_bits(size);
    let m = wg_log_mantissa(bits);
    let low = m < F(0.918558657);
    let high = m > F(1.08972478);
    let c = select(select(F(1.0), F(0.84375), low), F(1.1875), high);
    let c_upper = select(select(F(0.0), F(-0.2451171875), low), F(0.2479248046875), high);
    let c_lower = select(select(F(0.0), F(4.68966346e-6), low), F(2.70875603e-6), high);
    let k = wg_log_exponent(size, bits) + c_upper;
    let over = m - c;
    let inverse = F(1.0) / (m + c);
    let s = over * inverse;
    let s_upper = wg_upper(s);
    let m_upper = bitcast<F>(bitcast<U>(m) & U(0xffffe000u));
    let s_lower = ((over - s_upper * (m_upper + c)) - s_upper * (m - m_upper)) * inverse;
    let z = s * s;
    let tail = s * z * (F(0.961796701) + z * (F(0.57706362) + z * F(0.416417897)));
    let upper = s_upper * F(2.8857421875);
    let lower = (s_upper * F(-0.000352105708) + c_lower) + (s_lower * F(2.88539004) + tail);
    let log_upper = wg_upper(k + (upper + lower));
    let log_lower = ((k - log_upper) + upper) + lower;
    let power = clamp(y, F(-1e12), F(1e12));
    let y_upper = wg_upper(power);
    let e_upper = y_upper * log_upper;
    let e_lower = (power - y_upper) * log_upper + power * log_lower;
    let e = e_upper + e_lower;
    let n = round(clamp(e, F(-151.0), F(128.0)));
    let r = clamp((e_upper - n) + e_lower, F(-0.501), F(0.501)); // e's rounding takes it over 1/2
    return wg_scale(F(1.0) + wg_exp2_tail(r), wg_whole(n));
}
fn wg_power(x: F, y: F) -> F {
    let x_bits = wg_size_bits(x);
    let y_bits = wg_size_bits(y);
    // 0 and infinity stay, or change places where y is negative; so does everything else where y is infinite.
    let upward = (x_bits > U(0x3f800000u)) == (bitcast<I>(y) >= I(0));
    let end = select(F(0.0), wg_infinity(), upward);
    let at_end = (x_bits == U(0u)) | (x_bits == U(0x7f800000u)) | (y_bits == U(0x7f800000u));
    let size = select(wg_power_size(x, y), end, at_end);
    let minus = bitcast<I>(x) < I(0);
    let whole = (floor(y) == y) | (y_bits >= U(0x4b800000u));
    let odd = whole & (y_bits < U(0x4b800000u)) & (floor(y * F(0.5)) * F(2.0) != y);
    let signed = select(size, -size, minus & odd);
    let undefined = minus & !whole & (x_bits != U(0u)) & (x_bits != U(0x7f800000u));
    let result = select(signed, wg_not_a_number(), undefined);
    let kept = wg_keep_nan(x, wg_keep_nan(y, result));
    let one = (y_bits == U(0u)) | (bitcast<U>(x) == U(0x3f800000u))
        | ((x_bits == U(0x3f800000u)) & (y_bits == U(0x7f800000u)));
    return select(kept, F(1.0), one);
}

// Trigonometry

// The 32 bits of 2/π that begin 32 (word - 1) bits behind the point.
fn wg_two_over_pi(word: U) -> U {
    var bits = select(U(0u), U(0xa2f9836eu), word == U(1u));
    bits = select(bits, U(0x4e441529u), word == U(2u));
    bits = select(bits, U(0xfc2757d1u), word == U(3u));
    bits = select(bits, U(0xf534ddc0u), word == U(4u));
    bits = select(bits, U(0xdb629599u), word == U(5u));
    bits = select(bits, U(0x3c439041u), word == U(6u));
    return select(bits, U(0xfe5163abu), word == U(7u));
}
// The upper 32 bits of the product of a number below 2^24 and any.
fn wg_product_upper(a: U, b: U) -> U {
    let a_low = a & U(0xffffu);
    let a_high = a >> U(16u);
    let b_low = b & U(0xffffu);
    let b_high = b >> U(16u);
    let middle = a_high * b_low + ((a_low * b_low) >> U(16u)); // below 2^25
    let other = a_low * b_high;
    let carry = ((middle & U(0xffffu)) + (other & U(0xffffu))) >> U(16u);
    return a_high * b_high + (middle >> U(16u)) + (other >> U(16u)) + carry;
}
// x - quarter π/2 for any |x| from 2^12: x times the bits of 2/π that matter, as integers (Payne and Hanek).
fn wg_turn_far(x: F, quarter: ptr<function, U>) -> F {
    let exponent = wg_size_bits(x) >> U(23u);
    let place = max(exponent, U(120u)) - U(120u);
    let word = place >> U(5u);
    let shift = place & U(31u);
    let back = U(31u) - shift;
    let a = wg_two_over_pi(word);
    let b = wg_two_over_pi(word + U(1u));
    let c = wg_two_over_pi(word + U(2u));
    let d = wg_two_over_pi(word + U(3u));
    let first = (a << shift) | ((b >> U(1u)) >> back);
    let second = (b << shift) | ((c >> U(1u)) >> back);
    let third = (c << shift) | ((d >> U(1u)) >> back);
    let m = (bitcast<U>(x) & U(0x7fffffu)) | U(0x800000u);
    let carried = wg_product_upper(m, third);
    let low = m * second + carried;
    let carry = select(U(0u), U(1u), low < carried);
    // Two bits of whole quarters, then the fraction; half a quarter is added to round.
    let high = m * first + wg_product_upper(m, second) + carry + U(0x20000000u);
    let offset = bitcast<I>(high & U(0x3fffffffu)) - I(0x20000000);
    let below = offset < I(0);
    let flip = select(U(0u), U(0xffffffffu), below);
    let top = bitcast<U>(offset) ^ flip;
    let upper = F(top & U(0xffffffc0u)); // exact
    let lower = F(top & U(0x3fu)) + F(low ^ flip) * F(2.32830644e-10);
    let minus = bitcast<I>(x) < I(0);
    let turns = high >> U(30u);
    *quarter = select(turns, ~turns + U(1u), minus);
    let r = upper * F(1.46291812e-9) + (lower * F(1.46291812e-9) - upper * F(4.07094774e-17));
    return select(select(r, -r, below != minus), wg_not_a_number(), exponent == U(255u));
}
// x - quarter π/2, between -π/4 and π/4. π/2 is the sum of four numbers, whose products with a quarter below
// 2^12 are exact but for the last.
fn wg_turn(x: F, quarter: ptr<function, U>) -> F {
    let near = clamp(x, F(-6400.0), F(6400.0)); // and settled
    let n = round(near * F(0.636619747));
    let most = (near - n * F(1.5703125)) - n * F(0.000483751297);
    var r = (most - n * F(7.54953362e-8)) - n * F(2.56334406e-12);
    *quarter = bitcast<U>(wg_whole(n));
    let far = wg_size_bits(x) > U(0x45c80000u); // 6400
    if (any(far)) {
        var far_quarter = U(0u);
        let far_r = wg_turn_far(x, &far_quarter);
        r = select(r, far_r, far);
        *quarter = select(*quarter, far_quarter, far);
    }
    return r;
}
fn wg_sin_near(r: F) -> F {
    let z = r * r;
    return r + r * z * (F(-0.166666552) + z * (F(0.0083321901) - z * F(0.000195184053)));
}
fn wg_cos_near(r: F) -> F {
    let z = r * r;
    let tail = z * z * (F(0.041666653) + z * (F(-0.00138876098) + z * F(2.44617495e-5)));
    return F(1.0) - (F(0.5) * z - tail);
}
// sin(r + quarter π/2)
fn wg_sin_turned(r: F, quarter: U) -> F {
    let size = select(wg_sin_near(r), wg_cos_near(r), (quarter & U(1u)) != U(0u));
    return bitcast<F>(bitcast<U>(size) ^ ((quarter & U(2u)) << U(30u)));
}
fn wg_sin(x: F) -> F {
    var quarter = U(0u);
    let r = wg_turn(x, &quarter);
    return wg_keep_zero(x, wg_sin_turned(r, quarter));
}
fn wg_cos(x: F) -> F {
    var quarter = U(0u);
    let r = wg_turn(x, &quarter);
    return wg_sin_turned(r, quarter + U(1u));
}
fn wg_tan(x: F) -> F {
    var quarter = U(0u);
    let r = wg_turn(x, &quarter);
    let sine = wg_sin_near(r);
    let cosine = wg_cos_near(r);
    let odd = (quarter & U(1u)) != U(0u);
    return wg_keep_zero(x, select(sine, -cosine, odd) / select(cosine, sine, odd));
}
// asin(s), with z = s², for s up to 1/2.
fn wg_asin_near(s: F, z: F) -> F {
    let high = F(0.0454039834) + z * (F(0.0244612135) + z * F(0.0417424329));
    return s + s * z * (F(0.166667312) + z * (F(0.0749594346) + z * high));
}
fn wg_asin(x: F) -> F {
    let size = abs(x);
    let far = size > F(0.5);
    let z = select(size * size, F(0.5) - F(0.5) * size, far);
    let near = wg_asin_near(select(size, wg_sqrt(z), far), z);
    return wg_keep_nan(x, wg_with_sign(select(near, F(1.57079637) - F(2.0) * near, far), x));
}
fn wg_acos(x: F) -> F {
    let size = abs(x);
    let far = size > F(0.5);
    let z = select(size * size, F(0.5) - F(0.5) * size, far);
    let near = wg_asin_near(select(size, wg_sqrt(z), far), z);
    let signed = wg_with_sign(near, x);
    let outer = select(F(2.0) * near, F(3.14159274) - F(2.0) * near, x < F(0.0));
    let result = select(F(1.57079637) - signed, outer, far);
    return wg_keep_nan(x, select(result, wg_not_a_number(), size > F(1.0)));
}
// atan(q) for q from 0 to 1.
fn wg_atan_near(q: F) -> F {
    let z = q * q;
    let top = F(-0.0318121426) + z * (F(0.0112388236) - z * F(0.00186308939));
    let high = F(0.109678768) + z * (F(-0.0844563022) + z * (F(0.0586318709) + z * top));
    return q + q * z * (F(-0.333333135) + z * (F(0.199989066) + z * (F(-0.142675698) + z * high)));
}
fn wg_atan(x: F) -> F {
    let size = abs(x);
    let far = size > F(1.0);
    let near = wg_atan_near(select(size, F(1.0) / size, far));
    return wg_keep_nan(x, wg_with_sign(select(near, F(1.57079637) - near, far), x));
}
fn wg_atan2(y: F, x: F) -> F {
    let up = abs(y);
    let along = abs(x);
    let larger = max(up, along);
    let ratio = min(up, along) / larger;
    let same = wg_size_bits(y) == wg_size_bits(x); // both 0, or both infinite
    let near = wg_atan_near(select(ratio, select(F(0.0), F(1.0), larger > F(0.0)), same));
    let right = select(near, F(1.57079637) - near, up > along);
    let result = select(right, F(3.14159274) - right, bitcast<I>(x) < I(0));
    return wg_keep_nan(x, wg_keep_nan(y, wg_with_sign(result, y)));
}

// The error function and gelu

// factor exp(-scale x²): the upper part of x² is exact.
fn wg_exp_square(factor: F, x: F, scale: F) -> F {
    let upper = wg_upper(x);
    let rest = (x - upper) * (x + upper);
    return wg_exp_times(factor, I(0), -wg_settled(upper * upper * scale), -rest * scale);
}
// erfc(x) for x from 0 to 9.2: exp(-x²) / (x + 2) times a polynomial of (x - 2) / (x + 2).
fn wg_erfc_near(x: F) -> F {
    let below = x + F(2.0);
    let s = F(2.0) * (x / below) - F(1.0);
    let top = F(0.00304291351) + s * (F(-0.000726362225) + s * (F(-0.000529147452) - s * F(4.67994578e-5)));
    let high = F(-0.0364359021) + s * (F(-0.0215028133) + s * (F(0.00643521547) + s * top));
    let p = F(1.02158272) + s * (F(-0.687160909) + s * (F(0.279471517) + s * high));
    return wg_exp_square(p / below, x, F(1.0));
}
fn wg_erfc(x: F) -> F {
    let size = abs(x);
    let far = size > F(9.19454956); // erfc is below 2^-126
    let near = select(wg_erfc_near(select(size, F(0.0), far)), F(0.0), far);
    return wg_keep_nan(x, select(near, F(2.0) - near, x < F(0.0)));
}
fn wg_erf(x: F) -> F {
    let size = abs(x);
    let z = x * x;
    let high = F(-0.0268533472) + z * (F(0.0051871622) + z * (F(-0.00079978531) + z * F(7.80690316e-5)));
    let near = size + size * (F(0.128379166) + z * (F(-0.37612626) + z * (F(0.112835787) + z * high)));
    let far = F(1.0) - wg_erfc_near(min(size, F(4.0)));
    return wg_keep_nan(x, wg_with_sign(select(far, near, size < F(1.0)), x));
}
// x Φ(-x) for x from 0 to 13.15: exp(-x²/2) x / (x + 3.25) times a polynomial of (x - 3.25) / (x + 3.25).
fn wg_normal_tail(x: F) -> F {
    let share = x / (x + F(3.25));
    let s = F(2.0) * share - F(1.0);
    let top = F(-0.00109307421) + s * (F(0.000136255403) + s * (F(0.000172092492) + s * F(2.57185293e-5)));
    let high = F(0.00109971117) + s * (F(0.00831780024) + s * (F(-0.00116977841) + s * top));
    let p = F(0.274453729) + s * (F(-0.0809261724) + s * high);
    return wg_exp_square(share * (F(0.737438381) + s * (F(-0.539486647) + s * p)), x, F(0.5));
}
fn wg_gelu(x: F) -> F {
    let size = abs(x);
    // Beyond this the tail is below 2^-126; at 0 it is 0.
    let inside = select(F(0.0), size, size < F(13.1462469));
    return wg_keep_nan(x, max(x, F(0.0)) - wg_normal_tail(inside));
}
// x / (1 + exp(-u)) with u = x (A + B x²), A and B / A being GELU_SCALE and GELU_CUBIC of ops/references.py.
// An error of u is one of the result: u is a sum whose upper part is exact.
fn wg_gelu_tanh(x: F) -> F {
    let a = wg_keep_nan(x, F(1.595703125)); // A's upper part; as a constant it would be added to others first
    let size = select(F(0.0), abs(x), abs(x) < F(10.1006374)); // as in wg_gelu
    let upper = wg_upper(size);
    let lower = size - upper;
    let square = size * size;
    let square_upper = wg_upper(square);
    let square_lower = wg_settled(upper * upper - square_upper) + lower * (size + upper);
    let factor_upper = wg_upper(a + (F(6.59966026e-5) + square * F(0.0713548163)));
    let rest = F(6.59966026e-5) + (square * F(4.71861631e-6) + square_lower * F(0.0713500977));
    let factor_lower = wg_settled((a - factor_upper) + square_upper * F(0.07135009765625)) + rest;
    let u_lower = lower * factor_upper + size * factor_lower;
    let small = wg_exp_times(F(1.0), I(24), -wg_settled(upper * factor_upper), -u_lower);
    return max(x, F(0.0)) - (size * small) / (F(16777216.0) + small);
}

// Casts. Floats become integers by truncation, stop at the ends of the range, and NaN becomes 0.

fn wg_cast_f32_bool(x: F) -> B { return wg_size_bits(x) != U(0u); }
fn wg_cast_f64_bool(x: D) -> B { return wg_size_bits_f64(x) != M(0lu); }
fn wg_cast_f32_i32(x: F) -> I {
    let result = select(I(x), I(2147483647), x >= F(2147483648.0));
    return select(result, I(0), wg_isnan(x));
}
fn wg_cast_f32_u32(x: F) -> U {
    let result = select(U(max(x, F(0.0))), U(0xffffffffu), x >= F(4294967296.0));
    return select(result, U(0u), wg_isnan(x));
}
fn wg_cast_f32_i16(x: F) -> I { return select(I(clamp(x, F(-32768.0), F(32767.0))), I(0), wg_isnan(x)); }
fn wg_cast_f32_i8(x: F) -> I { return select(I(clamp(x, F(-128.0), F(127.0))), I(0), wg_isnan(x)); }
fn wg_cast_f32_u16(x: F) -> U { return select(U(clamp(x, F(0.0), F(65535.0))), U(0u), wg_isnan(x)); }
fn wg_cast_f32_u8(x: F) -> U { return select(U(clamp(x, F(0.0), F(255.0))), U(0u), wg_isnan(x)); }
fn wg_cast_f32_i64(x: F) -> L {
    let result = select(L(x), L(9223372036854775807li), x >= F(9223372036854775808.0));
    return select(result, L(0li), wg_isnan(x));
}
fn wg_cast_f32_u64(x: F) -> M {
    let result = select(M(max(x, F(0.0))), M(0xfffffffffffffffflu), x >= F(18446744073709551616.0));
    return select(result, M(0lu), wg_isnan(x));
}
fn wg_cast_f64_i32(x: D) -> I {
    return select(I(clamp(x, D(-2147483648.0lf), D(2147483647.0lf))), I(0), wg_isnan_f64(x));
}
fn wg_cast_f64_u32(x: D) -> U {
    return select(U(clamp(x, D(0.0lf), D(4294967295.0lf))), U(0u), wg_isnan_f64(x));
}
fn wg_cast_f64_i16(x: D) -> I {
    return select(I(clamp(x, D(-32768.0lf), D(32767.0lf))), I(0), wg_isnan_f64(x));
}
fn wg_cast_f64_i8(x: D) -> I { return select(I(clamp(x, D(-128.0lf), D(127.0lf))), I(0), wg_isnan_f64(x)); }
fn wg_cast_f64_u16(x: D) -> U { return select(U(clamp(x, D(0.0lf), D(65535.0lf))), U(0u), wg_isnan_f64(x)); }
fn wg_cast_f64_u8(x: D) -> U { return select(U(clamp(x, D(0.0lf), D(255.0lf))), U(0u), wg_isnan_f64(x)); }
fn wg_cast_f64_i64(x: D) -> L {
    let result = select(L(x), L(9223372036854775807li), x >= D(9223372036854775808.0lf));
    return select(result, L(0li), wg_isnan_f64(x));
}
fn wg_cast_f64_u64(x: D) -> M {
    let result = select(M(max(x, D(0.0lf))), M(0xfffffffffffffffflu), x >= D(18446744073709551616.0lf));
    return select(result, M(0lu), wg_isnan_f64(x));
}
fn wg_wrap_i8(x: I) -> I { return (x << U(24u)) >> U(24u); }
fn wg_wrap_i16(x: I) -> I { return (x << U(16u)) >> U(16u); }
fn wg_wrap_u8(x: U) -> U { return x & U(0xffu); }
fn wg_wrap_u16(x: U) -> U { return x & U(0xffffu); }

// float16 and bfloat16: rounded to nearest even; a NaN keeps its sign and is quiet.

fn wg_bf16_bits(x: F) -> U {
    let bits = bitcast<U>(x);
    let rounded = (bits + U(0x7fffu) + ((bits >> U(16u)) & U(1u))) >> U(16u);
    return select(rounded, (bits >> U(16u)) | U(0x40u), wg_isnan(x));
}
fn wg_round_bf16(x: F) -> F { return bitcast<F>(wg_bf16_bits(x) << U(16u)); }
// Subnormals of float16 are multiples of 2^-24, as is the last place of numbers from 0.5 to 1.
fn wg_f16_multiple(x: F) -> U { return bitcast<U>(wg_abs(x) + F(0.5)) - U(0x3f000000u); }
fn wg_f16_bits(x: F) -> U {
    let size = wg_size_bits(x);
    let normal = (size + U(0xfffu) + ((size >> U(13u)) & U(1u)) - U(0x38000000u)) >> U(13u);
    let finite = select(normal, wg_f16_multiple(x), size < U(0x38800000u));
    let large = select(finite, U(0x7c00u), size >= U(0x477ff000u)); // 65520 and infinity
    let result = select(large, U(0x7e00u), size > U(0x7f800000u));
    return result | ((bitcast<U>(x) >> U(16u)) & U(0x8000u));
}
fn wg_round_f16(x: F) -> F {
    let size = wg_size_bits(x);
    let normal = bitcast<F>((size + U(0xfffu) + ((size >> U(13u)) & U(1u))) & U(0xffffe000u));
    let finite = select(normal, F(wg_f16_multiple(x)) * F(5.96046448e-8), size < U(0x38800000u));
    let result = select(finite, wg_infinity(), size >= U(0x477ff000u));
    return wg_keep_nan(x, wg_with_sign(result, x));
}

// Packed storage, exactly as NumPy lays it out: `place` counts the elements of a word from its low bits.

fn wg_unpack4_f16(words: vec2<u32>) -> vec4<f32> {
    return vec4<f32>(unpack2x16float(words.x), unpack2x16float(words.y));
}
fn wg_unpack1_f16(word: u32, place: u32) -> f32 { return unpack2x16float(word >> (place * 16u)).x; }
fn wg_pack4_f16(v: vec4<f32>) -> vec2<u32> {
    let bits = wg_f16_bits_4(v);
    return bits.xz | (bits.yw << vec2<u32>(16u));
}
fn wg_unpack4_bf16(words: vec2<u32>) -> vec4<f32> {
    let low = words << vec2<u32>(16u);
    let high = words & vec2<u32>(0xffff0000u);
    return bitcast<vec4<f32>>(vec4<u32>(low.x, high.x, low.y, high.y));
}
fn wg_unpack1_bf16(word: u32, place: u32) -> f32 { return bitcast<f32>((word >> (place * 16u)) << 16u); }
fn wg_pack4_bf16(v: vec4<f32>) -> vec2<u32> {
    let bits = wg_bf16_bits_4(v);
    return bits.xz | (bits.yw << vec2<u32>(16u));
}
fn wg_unpack4_i16(words: vec2<u32>) -> vec4<i32> {
    let low = bitcast<vec2<i32>>(words << vec2<u32>(16u)) >> vec2<u32>(16u);
    let high = bitcast<vec2<i32>>(words) >> vec2<u32>(16u);
    return vec4<i32>(low.x, high.x, low.y, high.y);
}
fn wg_unpack1_i16(word: u32, place: u32) -> i32 { return bitcast<i32>(word << (16u - place * 16u)) >> 16u; }
fn wg_pack4_i16(v: vec4<i32>) -> vec2<u32> { return wg_pack4_u16(bitcast<vec4<u32>>(v)); }
fn wg_unpack4_u16(words: vec2<u32>) -> vec4<u32> {
    return vec4<u32>(words.x & 0xffffu, words.x >> 16u, words.y & 0xffffu, words.y >> 16u);
}
fn wg_unpack1_u16(word: u32, place: u32) -> u32 { return (word >> (place * 16u)) & 0xffffu; }
fn wg_pack4_u16(v: vec4<u32>) -> vec2<u32> { return (v.xz & vec2<u32>(0xffffu)) | (v.yw << vec2<u32>(16u)); }
fn wg_unpack4_i8(word: u32) -> vec4<i32> { return unpack4xI8(word); }
fn wg_unpack1_i8(word: u32, place: u32) -> i32 { return bitcast<i32>(word << (24u - place * 8u)) >> 24u; }
fn wg_pack4_i8(v: vec4<i32>) -> u32 { return pack4xI8(v); }
fn wg_unpack4_u8(word: u32) -> vec4<u32> { return unpack4xU8(word); }
fn wg_unpack1_u8(word: u32, place: u32) -> u32 { return (word >> (place * 8u)) & 0xffu; }
fn wg_pack4_u8(v: vec4<u32>) -> u32 { return pack4xU8(v); }
fn wg_unpack4_bool(word: u32) -> vec4<bool> { return unpack4xU8(word) != vec4<u32>(0u); }
fn wg_unpack1_bool(word: u32, place: u32) -> bool { return ((word >> (place * 8u)) & 0xffu) != 0u; }
fn wg_pack4_bool(v: vec4<bool>) -> u32 { return pack4xU8(select(vec4<u32>(0u), vec4<u32>(1u), v)); }
