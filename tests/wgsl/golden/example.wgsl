struct Params {
    count: u32,
    scale: f32,
}
@group(1) @binding(0) var<uniform> p: Params;
@group(0) @binding(0) var<storage, read> source: array<f32>;
@group(0) @binding(1) var<storage, read_write> target_rows: array<f32>;
fn scaled(value: f32) -> f32 {
    let nothing = value * 2;
    return value * p.scale;
}
@compute @workgroup_size(4)
fn scale_rows(@builtin(global_invocation_id) id: vec3<u32>) {
    let first = id.x * 4u;
    if (first < p.count) {
        let rows0 = scaled(source[first + 0u]);
        let rows1 = scaled(source[first + 1u]);
        let rows2 = scaled(source[first + 2u]);
        let rows3 = scaled(source[first + 3u]);
        target_rows[first + 0u] = rows0;
        target_rows[first + 1u] = rows1;
        target_rows[first + 2u] = rows2;
        target_rows[first + 3u] = rows3;
    }
}
