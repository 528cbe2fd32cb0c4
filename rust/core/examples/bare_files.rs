//! Create, write and close files as fast as the system does: `bare_files DIRECTORY COUNT BYTES`; prints the seconds.

use std::time::Instant;

use rustix::fs::{CWD, Mode, OFlags, openat};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, count, bytes] = arguments.as_slice() else {
        return Err("usage: bare_files DIRECTORY COUNT BYTES".into());
    };
    let (count, bytes): (usize, usize) = (count.parse()?, bytes.parse()?);
    let content = vec![b'x'; bytes];
    std::fs::create_dir(directory)?;
    let folder = openat(
        CWD,
        directory.as_str(),
        OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let start = Instant::now();
    for number in 0..count {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::WRONLY | OFlags::CLOEXEC;
        let file = openat(&folder, format!("{number}.txt"), flags, Mode::from_raw_mode(0o666))?;
        rustix::io::write(&file, &content)?;
    }
    println!("{}", start.elapsed().as_secs_f64());
    Ok(())
}
