// The functions of float64 (D) that generated kernels call: WGSL has none of them. `library.wgsl` says how
// such a file is written and what compilers do. Most functions are those of float32 with other numbers; what
// is explained there is not explained again. One whose name ends in _1 and _4 is written for each width.
//
// Numbers are taken apart as u64, so an adapter needs int64 too. Subnormal numbers are kept, in and out,
// where the adapter keeps them. Polynomials agree with the function at Chebyshev's points of the interval
// that is named; they were computed with 60 digits, then rounded, and leave less than 2^-55 of the result.

// Special values

fn wg_infinity_f64() -> D {
    let bits = M(0x7ff0000000000000lu);
    return bitcast<D>(bits);
}
fn wg_not_a_number_f64() -> D {
    let bits = M(0x7ff8000000000000lu);
    return bitcast<D>(bits);
}
fn wg_with_sign_f64(size: D, sign: D) -> D {
    return bitcast<D>(wg_size_bits_f64(size) | (bitcast<M>(sign) & M(0x8000000000000000lu)));
}
// Mesa's own lose the sign of -0.0, and round -1.5 to -1.
fn wg_trunc_f64(x: D) -> D { return wg_with_sign_f64(floor(abs(x)), x); }
fn wg_round_f64(x: D) -> D {
    let low = floor(abs(x));
    let rest = abs(x) - low;
    let odd = floor(low * D(0.5lf)) * D(2.0lf) != low;
    let up = (rest > D(0.5lf)) | ((rest == D(0.5lf)) & odd);
    let whole = wg_size_bits_f64(x) >= M(0x4330000000000000lu); // from 2^52 on, infinities and NaN
    return select(wg_with_sign_f64(select(low, low + D(1.0lf), up), x), x, whole);
}
fn wg_settled_f64(x: D) -> D { return min(x, D(1e300lf)); }
// The upper 26 bits of a number's 53: the product of two such is exact.
fn wg_upper_f64(x: D) -> D { return bitcast<D>(bitcast<M>(x) & M(0xfffffffff8000000lu)); }
// x where it is so small that an odd function is x itself; the sign of 0 is kept so.
fn wg_keep_tiny_f64(x: D, result: D) -> D { return select(result, x, abs(x) < D(1e-300lf)); }

// Division

// |a| modulo |b|, exactly: long division of the mantissas, eleven bits of the quotient a step.
fn wg_modulo_f64(a: D, b: D) -> D {
    let number = wg_size_bits_f64(a);
    let by = wg_size_bits_f64(b);
    let normal = M(0x10000000000000lu);
    let exponent = I(max(U(by >> U(52u)), U(1u)));
    let divisor = max((by & (normal - M(1lu))) | select(M(0lu), normal, by >= normal), M(1lu));
    var left = max(I(max(U(number >> U(52u)), U(1u))) - exponent, I(0));
    var rest = ((number & (normal - M(1lu))) | select(M(0lu), normal, number >= normal)) % divisor;
    while (any(left > I(0))) {
        let step = min(left, I(11));
        rest = (rest << bitcast<U>(step)) % divisor;
        left -= step;
    }
    return select(wg_scale_f64(D(rest), exponent - I(1075)), bitcast<D>(number), number < by);
}
fn wg_undivided_f64(a: D, b: D) -> B {
    let by = wg_size_bits_f64(b);
    return !wg_isfinite_f64(a) | (by > M(0x7ff0000000000000lu)) | (by == M(0lu));
}
fn wg_across_f64(rest: D, a: D, b: D) -> B {
    return (wg_size_bits_f64(rest) != M(0lu)) & (bitcast<L>(bitcast<M>(a) ^ bitcast<M>(b)) < L(0li));
}
fn wg_remainder_f64(a: D, b: D) -> D {
    let rest = wg_modulo_f64(a, b);
    let result = wg_with_sign_f64(select(rest, abs(b) - rest, wg_across_f64(rest, a, b)), b);
    return select(result, wg_not_a_number_f64(), wg_undivided_f64(a, b));
}
fn wg_floor_divide_f64(a: D, b: D) -> D {
    let rest = wg_modulo_f64(a, b);
    let down = select(D(0.0lf), D(1.0lf), wg_across_f64(rest, a, b));
    let quotient = round((a - wg_with_sign_f64(rest, a)) / b) - down;
    let signed = wg_with_sign_f64(quotient, bitcast<D>(bitcast<M>(a) ^ bitcast<M>(b)));
    return select(signed, a / b, wg_undivided_f64(a, b) | wg_isinf_f64(b));
}

// Exponentials

// A whole number of at most 31 bits as an integer.
fn wg_whole_f64(x: D) -> I { return bitcast<I>(U(bitcast<M>(x + D(6755399441055744.0lf)))); }
fn wg_power_of_two_f64(n: I) -> D { return bitcast<D>(M(bitcast<U>(n + I(1023))) << U(52u)); }
// x 2^n for n from -2044 to 2046, rounded once.
fn wg_scale_f64(x: D, n: I) -> D {
    let half = n >> U(1u);
    return (x * wg_power_of_two_f64(half)) * wg_power_of_two_f64(n - half);
}
// exp(r) - 1 for |r| <= 0.348.
fn wg_exp_tail_f64(r: D) -> D {
    var p = 2.510564479145537e-8lf + r * 2.091499245327924e-9lf;
    p = 2.4801587326131077e-5lf + r * (2.755725436822675e-6lf + r * (2.755727290616548e-7lf + r * p));
    p = 0.0083333333333259lf + r * (0.0013888888888883581lf + r * (0.00019841269875637497lf + r * p));
    p = 0.5lf + r * (0.1666666666666667lf + r * (0.04166666666666667lf + r * p));
    return r + (r * r) * p;
}
// x + rest - n log(2); products with the upper part of log(2) are exact.
fn wg_exp_rest_f64(x: D, rest: D, n: D) -> D {
    return (x - n * 0.693147180559663lf) + (rest - n * 2.8235290563031577e-13lf);
}
// factor 2^up exp(x + rest), where `rest` is small. x must be settled if it is a product.
fn wg_exp_times_f64(factor: D, up: I, x: D, rest: D) -> D {
    let n = round((x + rest) * 1.4426950408889634lf);
    let tail = wg_exp_tail_f64(wg_exp_rest_f64(x, rest, n));
    return wg_scale_f64(factor + factor * tail, wg_whole_f64(n) + up);
}
fn wg_exp_f64(x: D) -> D {
    return wg_keep_nan_f64(x, wg_exp_times_f64(D(1.0lf), I(0), clamp(x, D(-746.0lf), D(710.0lf)), D(0.0lf)));
}
// 2^(n + r) for |r| <= 0.501.
fn wg_exp2_sum_f64(n: D, r: D) -> D {
    return wg_scale_f64(D(1.0lf) + wg_exp_tail_f64(r * 0.6931471805599453lf), wg_whole_f64(n));
}
fn wg_exp2_f64(x: D) -> D {
    let inside = clamp(x, D(-1076.0lf), D(1024.0lf));
    let n = round(inside);
    return wg_keep_nan_f64(x, wg_exp2_sum_f64(n, inside - n));
}
fn wg_expm1_f64(x: D) -> D {
    let inside = clamp(x, D(-40.0lf), D(710.0lf));
    let n = round(inside * 1.4426950408889634lf);
    let half = wg_power_of_two_f64(wg_whole_f64(n) - I(1));
    let tail = wg_exp_tail_f64(wg_exp_rest_f64(inside, D(0.0lf), n));
    return wg_keep_nan_f64(x, wg_keep_tiny_f64(x, (half * tail + (half - D(0.5lf))) * D(2.0lf)));
}
fn wg_sigmoid_f64(x: D) -> D {
    let small = wg_exp_f64(-abs(x));
    return select(D(1.0lf), small, x < D(0.0lf)) / (D(1.0lf) + small);
}
fn wg_sinh_f64(x: D) -> D {
    let size = abs(x);
    let half = wg_exp_times_f64(D(2.0lf), I(-2), min(size, D(711.0lf)), D(0.0lf));
    let over = wg_expm1_f64(min(size, D(1.0lf)));
    let near = D(0.5lf) * (over + over / (over + D(1.0lf)));
    let result = select(half - D(0.25lf) / half, near, size < D(1.0lf));
    return wg_keep_nan_f64(x, wg_with_sign_f64(result, x));
}
fn wg_cosh_f64(x: D) -> D {
    let half = wg_exp_times_f64(D(2.0lf), I(-2), min(abs(x), D(711.0lf)), D(0.0lf));
    return wg_keep_nan_f64(x, half + D(0.25lf) / half);
}
fn wg_tanh_f64(x: D) -> D {
    let over = wg_expm1_f64(min(abs(x) * D(2.0lf), D(44.0lf)));
    return wg_keep_nan_f64(x, wg_with_sign_f64(over / (over + D(2.0lf)), x));
}

// Logarithms

// log(1 + f) + k log(2), for 1 + f from sqrt(1/2) to sqrt(2): with s = f / (2 + f), log(1 + f) is
// f - f²/2 + s (f²/2 + R), where R is a polynomial of s² from 0 to 0.0294.
fn wg_log_sum_f64(f: D, k: D) -> D {
    let s = f / (D(2.0lf) + f);
    let z = s * s;
    var p = 0.13268714792348096lf + z * 0.1308723619665962lf;
    p = 0.22222222392089008lf + z * (0.18181795600060793lf + z * (0.15386241881938595lf + z * p));
    p = 0.6666666666666666lf + z * (0.4000000000000088lf + z * (0.28571428570801954lf + z * p));
    let square = D(0.5lf) * f * f;
    let tail = (s * (square + z * p) + k * 2.8235290563031577e-13lf) - square;
    return (f + tail) + k * 0.693147180559663lf;
}
fn wg_log_bits_f64(x: D) -> M {
    let bits = bitcast<M>(x);
    return select(bits, bitcast<M>(D(bits)), bits < M(0x10000000000000lu)) + M(0x95f619980c433lu);
}
fn wg_log_mantissa_f64(bits: M) -> D {
    return bitcast<D>((bits & M(0xffffffffffffflu)) + M(0x3fe6a09e667f3bcdlu));
}
fn wg_log_exponent_f64(x: D, bits: M) -> D {
    let subnormal = bitcast<M>(x) < M(0x10000000000000lu);
    return D(I(U(bits >> U(52u))) - select(I(1023), I(2097), subnormal));
}
fn wg_log_ends_f64(x: D, result: D) -> D {
    let bits = bitcast<M>(x);
    let above = select(result, x, bits >= M(0x7ff0000000000000lu));
    let below = select(above, wg_not_a_number_f64(), bits > M(0x8000000000000000lu));
    return select(below, -wg_infinity_f64(), wg_size_bits_f64(x) == M(0lu));
}
fn wg_log_f64(x: D) -> D {
    let bits = wg_log_bits_f64(x);
    let result = wg_log_sum_f64(wg_log_mantissa_f64(bits) - D(1.0lf), wg_log_exponent_f64(x, bits));
    return wg_log_ends_f64(x, result);
}
fn wg_log2_f64(x: D) -> D {
    let bits = wg_log_bits_f64(x);
    let near = wg_log_sum_f64(wg_log_mantissa_f64(bits) - D(1.0lf), D(0.0lf));
    return wg_log_ends_f64(x, near * 1.4426950408889634lf + wg_log_exponent_f64(x, bits));
}
fn wg_log10_f64(x: D) -> D {
    let bits = wg_log_bits_f64(x);
    let k = wg_log_exponent_f64(x, bits);
    let near = wg_log_sum_f64(wg_log_mantissa_f64(bits) - D(1.0lf), D(0.0lf));
    let low = near * 0.4342944819032518lf + k * 1.42050232272661e-13lf;
    return wg_log_ends_f64(x, low + k * 0.30102999566383914lf);
}
fn wg_log1p_f64(x: D) -> D {
    let sum = D(1.0lf) + x;
    let bits = wg_log_bits_f64(sum);
    let k = wg_log_exponent_f64(sum, bits);
    let f = select(wg_log_mantissa_f64(bits) - D(1.0lf), x, k == D(0.0lf));
    return wg_keep_tiny_f64(x, wg_log_ends_f64(sum, wg_log_sum_f64(f, k)));
}
fn wg_asinh_f64(x: D) -> D {
    let size = abs(x);
    let far = size > D(1e18lf);
    let z = size * size;
    let near = size + z / (D(1.0lf) + sqrt(D(1.0lf) + z));
    let result = wg_log1p_f64(select(near, size, far)) + select(D(0.0lf), D(0.6931471805599453lf), far);
    return wg_keep_nan_f64(x, wg_with_sign_f64(result, x));
}
fn wg_acosh_f64(x: D) -> D {
    let far = x > D(1e18lf);
    let over = x - D(1.0lf);
    let near = over + sqrt(over * (over + D(2.0lf)));
    let result = wg_log1p_f64(select(near, x, far)) + select(D(0.0lf), D(0.6931471805599453lf), far);
    return wg_keep_nan_f64(x, select(result, wg_not_a_number_f64(), x < D(1.0lf)));
}
fn wg_atanh_f64(x: D) -> D {
    let size = abs(x);
    let result = D(0.5lf) * wg_log1p_f64((size + size) / (D(1.0lf) - size));
    return wg_keep_nan_f64(x, wg_with_sign_f64(result, x));
}

// Powers and roots

fn wg_sqrt_f64(x: D) -> D { return select(sqrt(x), wg_not_a_number_f64(), x < D(0.0lf)); }
fn wg_rsqrt_f64(x: D) -> D { return D(1.0lf) / wg_sqrt_f64(x); }
// What belongs to the fifth of sqrt(1/2) to sqrt(2) that m is in.
fn wg_of_fifths_f64(m: D, a: D, b: D, c: D, d: D, e: D) -> D {
    let below = select(select(c, b, m < D(0.933324lf)), a, m < D(0.812481lf));
    return select(select(below, d, m > D(1.07165lf)), e, m > D(1.23138lf));
}
// |x|^y as 2^(y log2|x|); the polynomial is one of s² from 0 to 0.00126.
fn wg_power_size_f64(x: D, y: D) -> D {
    let size = abs(x);
    let bits = wg_log_bits_f64(size);
    let m = wg_log_mantissa_f64(bits);
    let zero = D(0.0lf);
    let c = wg_of_fifths_f64(m, D(0.7578125lf), D(0.87109375lf), D(1.0lf), D(1.1484375lf), D(1.3203125lf));
    let c_upper = wg_of_fifths_f64(
        m, D(-0.4000871628522873lf), D(-0.19910010695457458lf), zero,
        D(0.19967234134674072lf), D(0.400879442691803lf)
    );
    let c_lower = wg_of_fifths_f64(
        m, D(5.0394149723066875e-9lf), D(6.8748793179937905e-9lf), zero,
        D(3.4896236736814275e-9lf), D(-6.409618657722e-9lf)
    );
    let k = wg_log_exponent_f64(size, bits) + c_upper;
    let over = m - c;
    let inverse = D(1.0lf) / (m + c);
    let s = over * inverse;
    let s_upper = wg_upper_f64(s);
    let m_upper = bitcast<D>(bitcast<M>(m) & M(0xfffffffff0000000lu));
    let s_lower = ((over - s_upper * (m_upper + c)) - s_upper * (m - m_upper)) * inverse;
    let z = s * s;
    var p = 0.3205981253532912lf + z * 0.2630085839695655lf;
    p = 0.9617966939259756lf + z * (0.5770780163555306lf + z * (0.4121985834589005lf + z * p));
    let upper = s_upper * 2.885390043258667lf;
    let lower = (s_upper * 3.851925982253235e-8lf + c_lower) + (s_lower * 2.8853900817779268lf + s * z * p);
    let log_upper = wg_upper_f64(k + (upper + lower));
    let log_lower = ((k - log_upper) + upper) + lower;
    let power = clamp(y, D(-1e20lf), D(1e20lf));
    let y_upper = wg_upper_f64(power);
    let e_upper = y_upper * log_upper;
    let e_lower = (power - y_upper) * log_upper + power * log_lower;
    let n = round(clamp(e_upper + e_lower, D(-1076.0lf), D(1024.0lf)));
    return wg_exp2_sum_f64(n, clamp((e_upper - n) + e_lower, D(-0.501lf), D(0.501lf)));
}
fn wg_power_f64(x: D, y: D) -> D {
    let one = M(0x3ff0000000000000lu);
    let infinite = M(0x7ff0000000000000lu);
    let even = M(0x4340000000000000lu); // 2^53: from here on all numbers are even
    let x_bits = wg_size_bits_f64(x);
    let y_bits = wg_size_bits_f64(y);
    let upward = (x_bits > one) == (bitcast<L>(y) >= L(0li));
    let end = select(D(0.0lf), wg_infinity_f64(), upward);
    let at_end = (x_bits == M(0lu)) | (x_bits == infinite) | (y_bits == infinite);
    let size = select(wg_power_size_f64(x, y), end, at_end);
    let minus = bitcast<L>(x) < L(0li);
    let whole = (floor(y) == y) | (y_bits >= even);
    let odd = whole & (y_bits < even) & (floor(y * D(0.5lf)) * D(2.0lf) != y);
    let signed = select(size, -size, minus & odd);
    let undefined = minus & !whole & (x_bits != M(0lu)) & (x_bits != infinite);
    let result = select(signed, wg_not_a_number_f64(), undefined);
    let kept = wg_keep_nan_f64(x, wg_keep_nan_f64(y, result));
    let always = (y_bits == M(0lu)) | (bitcast<M>(x) == one) | ((x_bits == one) & (y_bits == infinite));
    return select(kept, D(1.0lf), always);
}

// Trigonometry

// The 64 bits of 2/π that begin 64 (word - 1) bits behind the point.
fn wg_two_over_pi_f64(word: u32) -> u64 {
    var words = array<u64, 20>(
        0lu, 0xa2f9836e4e441529lu, 0xfc2757d1f534ddc0lu, 0xdb6295993c439041lu,
        0xfe5163abdebbc561lu, 0xb7246e3a424dd2e0lu, 0x06492eea09d1921clu, 0xfe1deb1cb129a73elu,
        0xe88235f52ebb4484lu, 0xe99c7026b45f7e41lu, 0x3991d639835339f4lu, 0x9c845f8bbdf9283blu,
        0x1ff897ffde05980flu, 0xef2f118b5a0a6d1flu, 0x6d367ecf27cb09b7lu, 0x4f463f669e5fea2dlu,
        0x7527bac7ebe5f17blu, 0x3d0739f78a5292ealu, 0x6bfb5fb11f8d5d08lu, 0x56033046fc7b6bablu
    );
    return words[min(word, 19u)];
}
// The upper 64 bits of the product of a number below 2^53 and any.
fn wg_product_upper_f64(a: u64, b: u64) -> u64 {
    let a_low = a & 0xfffffffflu;
    let a_high = a >> 32u;
    let b_low = b & 0xfffffffflu;
    let b_high = b >> 32u;
    let middle = a_high * b_low + ((a_low * b_low) >> 32u); // below 2^54
    let other = a_low * b_high;
    let carry = ((middle & 0xfffffffflu) + (other & 0xfffffffflu)) >> 32u;
    return a_high * b_high + (middle >> 32u) + (other >> 32u) + carry;
}
// x - quarter π/2 for any |x| from 2^10, as wg_turn_far does it: of the smallest angle there is, 192 bits of
// 2/π leave 75.
fn wg_turn_far_f64_1(x: f64, quarter: ptr<function, u32>) -> f64 {
    let bits = bitcast<u64>(x);
    let exponent = u32(bits >> 52u) & 0x7ffu;
    let place = max(exponent, 1013u) - 1013u;
    let word = place >> 6u;
    let shift = place & 63u;
    let back = 63u - shift;
    let a = wg_two_over_pi_f64(word);
    let b = wg_two_over_pi_f64(word + 1u);
    let c = wg_two_over_pi_f64(word + 2u);
    let d = wg_two_over_pi_f64(word + 3u);
    let first = (a << shift) | ((b >> 1u) >> back);
    let second = (b << shift) | ((c >> 1u) >> back);
    let third = (c << shift) | ((d >> 1u) >> back);
    let m = (bits & 0xffffffffffffflu) | 0x10000000000000lu;
    let carried = wg_product_upper_f64(m, third);
    let low = m * second + carried;
    let carry = select(0lu, 1lu, low < carried);
    let high = m * first + wg_product_upper_f64(m, second) + carry + 0x2000000000000000lu;
    let offset = bitcast<i64>(high & 0x3ffffffffffffffflu) - 0x2000000000000000li;
    let below = offset < 0li;
    let flip = select(0lu, 0xfffffffffffffffflu, below);
    let top = bitcast<u64>(offset) ^ flip;
    let upper = f64(top & 0xffffffffffffff00lu); // exact
    let lower = f64(top & 0xfflu) + f64(low ^ flip) * 5.421010862427522e-20lf;
    let minus = bitcast<i64>(x) < 0li;
    let turns = u32(high >> 62u);
    *quarter = select(turns, ~turns + 1u, minus);
    let scale = 3.4061215800865545e-19lf; // π/2 2^-62
    let r = upper * scale + (lower * scale + upper * 1.3277647201629795e-35lf);
    return select(select(r, -r, below != minus), wg_not_a_number_f64_1(), exponent == 2047u);
}
fn wg_turn_far_f64_4(x: vec4<f64>, quarter: ptr<function, vec4<u32>>) -> vec4<f64> {
    var turns = vec4<u32>(0u);
    var result = x;
    for (var lane = 0u; lane < 4u; lane += 1u) {
        var turn = 0u;
        result[lane] = wg_turn_far_f64_1(x[lane], &turn);
        turns[lane] = turn;
    }
    *quarter = turns;
    return result;
}
// x - quarter π/2, between -π/4 and π/4. π/2 is the sum of four numbers, whose products with a quarter below
// 2^20 are exact but for the last.
fn wg_turn_f64(x: D, quarter: ptr<function, U>) -> D {
    let near = clamp(x, D(-1.6e6lf), D(1.6e6lf)); // and settled
    let n = round(near * D(0.6366197723675814lf));
    let most = (near - n * 1.5707963267341256lf) - n * 6.077100506303966e-11lf;
    var r = (most - n * 2.0222662487111665e-21lf) - n * 8.4784276603689e-32lf;
    *quarter = bitcast<U>(wg_whole_f64(n));
    let far = wg_size_bits_f64(x) > M(0x41386a0000000000lu); // 1.6e6
    if (any(far)) {
        var far_quarter = U(0u);
        let far_r = wg_turn_far_f64(x, &far_quarter);
        r = select(r, far_r, far);
        *quarter = select(*quarter, far_quarter, far);
    }
    return r;
}
fn wg_sin_near_f64(r: D) -> D {
    let z = r * r;
    var p = D(-7.586633672657066e-13lf);
    p = 2.755731921931959e-6lf + z * (-2.5052106225650122e-8lf + z * (1.60585305421325e-10lf + z * p));
    p = -0.16666666666666666lf + z * (0.008333333333333331lf + z * (-0.0001984126984126504lf + z * p));
    return r + r * z * p;
}
fn wg_cos_near_f64(r: D) -> D {
    let z = r * r;
    var p = -2.755731726556589e-7lf + z * (2.0876144984413913e-9lf + z * -1.1382539967177458e-11lf);
    p = 0.041666666666666664lf + z * (-0.0013888888888887389lf + z * (2.48015872987538e-5lf + z * p));
    return D(1.0lf) - (D(0.5lf) * z - z * z * p);
}
fn wg_sin_turned_f64(r: D, quarter: U) -> D {
    let size = select(wg_sin_near_f64(r), wg_cos_near_f64(r), (quarter & U(1u)) != U(0u));
    return bitcast<D>(bitcast<M>(size) ^ (M(quarter & U(2u)) << U(62u)));
}
fn wg_sin_f64(x: D) -> D {
    var quarter = U(0u);
    let r = wg_turn_f64(x, &quarter);
    return wg_keep_tiny_f64(x, wg_sin_turned_f64(r, quarter));
}
fn wg_cos_f64(x: D) -> D {
    var quarter = U(0u);
    let r = wg_turn_f64(x, &quarter);
    return wg_sin_turned_f64(r, quarter + U(1u));
}
fn wg_tan_f64(x: D) -> D {
    var quarter = U(0u);
    let r = wg_turn_f64(x, &quarter);
    let sine = wg_sin_near_f64(r);
    let cosine = wg_cos_near_f64(r);
    let odd = (quarter & U(1u)) != U(0u);
    return wg_keep_tiny_f64(x, select(sine, -cosine, odd) / select(cosine, sine, odd));
}
// asin(s), with z = s², for s up to 1/2.
fn wg_asin_near_f64(s: D, z: D) -> D {
    var p = -0.01924167174674304lf + z * 0.02961201126495512lf;
    p = 0.009319560794767446lf + z * (0.0030448799094556773lf + z * (0.019554513336123378lf + z * p));
    p = 0.01396378001220357lf + z * (0.011566459612121669lf + z * (0.009621842970100282lf + z * p));
    p = 0.03038194447553234lf + z * (0.02237215744350722lf + z * (0.017352816540325496lf + z * p));
    p = 0.16666666666666666lf + z * (0.07500000000000118lf + z * (0.044642857142551895lf + z * p));
    return s + s * z * p;
}
fn wg_asin_f64(x: D) -> D {
    let size = abs(x);
    let far = size > D(0.5lf);
    let z = select(size * size, D(0.5lf) - D(0.5lf) * size, far);
    let near = wg_asin_near_f64(select(size, sqrt(z), far), z);
    let result = wg_with_sign_f64(select(near, D(1.5707963267948966lf) - D(2.0lf) * near, far), x);
    return wg_keep_nan_f64(x, select(result, wg_not_a_number_f64(), size > D(1.0lf)));
}
fn wg_acos_f64(x: D) -> D {
    let size = abs(x);
    let far = size > D(0.5lf);
    let z = select(size * size, D(0.5lf) - D(0.5lf) * size, far);
    let near = wg_asin_near_f64(select(size, sqrt(z), far), z);
    let outer = select(D(2.0lf) * near, D(3.141592653589793lf) - D(2.0lf) * near, x < D(0.0lf));
    let result = select(D(1.5707963267948966lf) - wg_with_sign_f64(near, x), outer, far);
    return wg_keep_nan_f64(x, select(result, wg_not_a_number_f64(), size > D(1.0lf)));
}
// atan(up / along) for two positive numbers, or one of them 0. Beyond tan(π/8) the angle is one from π/4; the
// polynomial is one of q² from 0 to tan(π/8)².
fn wg_atan_ratio_f64(up: D, along: D) -> D {
    let low = min(up, along);
    let high = max(up, along);
    let middle = low > high * 0.41421356237309503lf;
    let q = select(low, low - high, middle) / select(high, low + high, middle);
    let z = q * q;
    var p = 0.045515165635903104lf + z * (-0.0345685906686069lf + z * 0.01628357235648259lf);
    p = -0.066664246872465lf + z * (0.05878926715756726lf + z * (-0.052304374642516874lf + z * p));
    p = 0.11111111105147764lf + z * (-0.09090908753118594lf + z * (0.07692296363979952lf + z * p));
    p = -0.3333333333333333lf + z * (0.19999999999999804lf + z * (-0.14285714285659748lf + z * p));
    let near = select(D(0.0lf), D(0.7853981633974483lf), middle) + (q + q * z * p);
    return select(near, D(1.5707963267948966lf) - near, up > along);
}
fn wg_atan_f64(x: D) -> D {
    return wg_keep_nan_f64(x, wg_with_sign_f64(wg_atan_ratio_f64(abs(x), D(1.0lf)), x));
}
fn wg_atan2_f64(y: D, x: D) -> D {
    let same = wg_size_bits_f64(y) == wg_size_bits_f64(x); // also both 0, or both infinite
    let scale = select(D(1.0lf), D(0.25lf), max(abs(y), abs(x)) > D(1e300lf)); // their sum must be finite
    let up = select(abs(y) * scale, select(D(1.0lf), D(0.0lf), wg_size_bits_f64(y) == M(0lu)), same);
    let right = wg_atan_ratio_f64(up, select(abs(x) * scale, D(1.0lf), same));
    let result = select(right, D(3.141592653589793lf) - right, bitcast<L>(x) < L(0li));
    return wg_keep_nan_f64(x, wg_keep_nan_f64(y, wg_with_sign_f64(result, y)));
}

// The error function and gelu

// factor exp(shift - scale x²)
fn wg_exp_square_f64(factor: D, x: D, scale: D, shift: D) -> D {
    let upper = wg_upper_f64(x);
    let rest = (x - upper) * (x + upper);
    return wg_exp_times_f64(factor, I(0), -wg_settled_f64(upper * upper * scale), shift - rest * scale);
}
// erfc(x) exp(x²) (x + k) for x from 0 to 27.3: a polynomial of (x - k) / (x + k); `share` is x / (x + k).
// k is near 2, such that both k and k sqrt(2) are floats.
fn wg_erfc_part_f64(share: D) -> D {
    let s = 2.0lf * share - 1.0lf;
    var p = D(1.007639403544229e-9lf);
    p = -2.073733740460397e-8lf + s * (-7.100764619389256e-9lf + s * (1.9482757984257323e-9lf + s * p));
    p = 8.817342511946296e-8lf + s * (8.150625289299073e-8lf + s * (6.945569492641286e-9lf + s * p));
    p = -4.6379832268961723e-7lf + s * (-4.0379298186570706e-7lf + s * (-9.341213986364021e-8lf + s * p));
    p = 2.9570421669886015e-6lf + s * (2.4321149786862922e-6lf + s * (4.3153445261239625e-7lf + s * p));
    p = -1.4885776821180353e-5lf + s * (-1.7842329771072116e-5lf + s * (-3.7377087575803172e-6lf + s * p));
    p = -3.503473714542774e-5lf + s * (0.00013892856618659888lf + s * (5.005662273427286e-5lf + s * p));
    p = 0.003426629704437251lf + s * (-0.0005722918885524409lf + s * (-0.0007083276662612131lf + s * p));
    p = -0.02789057459687889lf + s * (-0.02274752029361112lf + s * (0.005237041149605861lf + s * p));
    p = 1.018500205409277lf + s * (-0.6766132300059926lf + s * (0.26543515566734965lf + s * p));
    return p;
}
fn wg_erfc_near_f64(x: D) -> D {
    let below = x + 1.9638671875lf;
    return wg_exp_square_f64(wg_erfc_part_f64(x / below) / below, x, D(1.0lf), D(0.0lf));
}
fn wg_erfc_f64(x: D) -> D {
    let near = wg_erfc_near_f64(min(abs(x), D(27.3lf))); // there it is 0
    return wg_keep_nan_f64(x, select(near, D(2.0lf) - near, x < D(0.0lf)));
}
// Below 1 a polynomial of x² from 0 to 1.
fn wg_erf_f64(x: D) -> D {
    let size = abs(x);
    let z = size * size;
    var p = D(5.957176147748911e-11lf);
    p = -1.6350312701054695e-7lf + z * (1.4659775274047436e-8lf + z * (-1.1372848856791674e-9lf + z * p));
    p = 0.0001205533111164271lf + z * (-1.4925595266831182e-5lf + z * (1.6461000484121368e-6lf + z * p));
    p = -0.026866170645076792lf + z * (0.0052239776248180145lf + z * (-0.000854832698083379lf + z * p));
    p = 0.1283791670955126lf + z * (-0.3761263890318375lf + z * (0.11283791670954879lf + z * p));
    let far = D(1.0lf) - wg_erfc_near_f64(min(size, D(6.0lf)));
    return wg_keep_nan_f64(x, wg_with_sign_f64(select(far, size + size * p, size < D(1.0lf)), x));
}
// x Φ(-x) is x erfc(x sqrt(1/2)) / 2. The exponential takes x itself, whose square has more
// digits, and the factor sqrt(1/2).
fn wg_gelu_f64(x: D) -> D {
    let size = select(D(0.0lf), abs(x), abs(x) < D(38.6lf)); // beyond this the tail is 0
    let share = size / (size + 2.777327611262006lf);
    let tail = wg_exp_square_f64(share * wg_erfc_part_f64(share), size, D(0.5lf), D(-0.34657359027997264lf));
    return wg_keep_nan_f64(x, max(x, D(0.0lf)) - tail);
}
fn wg_gelu_tanh_f64(x: D) -> D {
    let a = wg_keep_nan_f64(x, D(1.5957691073417664lf));
    let size = select(D(0.0lf), abs(x), abs(x) < D(21.6lf)); // as in wg_gelu_f64
    let upper = wg_upper_f64(size);
    let lower = size - upper;
    let square = size * size;
    let square_upper = wg_upper_f64(square);
    let square_lower = wg_settled_f64(upper * upper - square_upper) + lower * (size + upper);
    let factor_upper = wg_upper_f64(a + (1.426396435433791e-8lf + square * 0.07135481627260025lf));
    let b = 0.071354815736413lf;
    let rest = 1.426396435433791e-8lf + (square * 5.361872467621785e-10lf + square_lower * b);
    let factor_lower = wg_settled_f64((a - factor_upper) + square_upper * b) + rest;
    let u_lower = lower * factor_upper + size * factor_lower;
    let small = wg_exp_times_f64(D(1.0lf), I(64), -wg_settled_f64(upper * factor_upper), -u_lower);
    return max(x, D(0.0lf)) - (size * small) / (D(18446744073709551616.0lf) + small);
}

// Casts

// Mesa takes f64(f32(x)) for x, but not across a select. NaN keeps its sign.
fn wg_cast_f64_f32(x: D) -> F {
    let signed = bitcast<F>(U(bitcast<M>(x) >> U(32u)) | U(0x7fc00000u));
    return select(F(x), signed, wg_isnan_f64(x));
}
