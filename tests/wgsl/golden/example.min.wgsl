struct g{c:u32,d:f32}
@group(1)@binding(0)var<uniform>f:g;
@group(0)@binding(0)var<storage,read>b:array<f32>;
@group(0)@binding(1)var<storage,read_write>c:array<f32>;
fn d(e:f32)->f32{return e*f.d;}
@compute@workgroup_size(4)fn scale_rows(@builtin(global_invocation_id)e:vec3<u32>){let a=e.x*4u;if(a<f.c){let h=d(b[a+0u]);let i=d(b[a+1u]);let j=d(b[a+2u]);let k=d(b[a+3u]);c[a+0u]=h;c[a+1u]=i;c[a+2u]=j;c[a+3u]=k;}}
