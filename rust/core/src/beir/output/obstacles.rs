//! What keeps an output from being written, told before anything is written.

use rustix::fs::FileType;

use super::capacity::Capacity;
use super::handle::{Destination, count_names, file_type, open_directory, status};
use super::journal::is_unfinished;
use super::layout::{CORPUS, FILES, Layout};
use crate::beir::check::space::Space;
use crate::error::Error;
use crate::stop::Stop;
use crate::text::quote;

/// Say what keeps documents of that `space` from being published, without writing anything.
///
/// # Errors
/// [`Error::Output`] when the file system cannot be asked, [`Error::Interrupted`].
pub fn find_obstacles(
    destination: &Destination,
    space: &Space,
    layout: Layout,
    stop: &Stop,
) -> Result<Vec<String>, Error> {
    let (directory, absent) = match destination.open_ancestor(&destination.path) {
        Ok(opened) => opened,
        Err(Error::Output { message }) => return Ok(vec![message]),
        Err(error) => return Err(error),
    };
    let capacity = Capacity::of(&directory).map_err(|error| destination.error("examine", "", error))?;
    let path = quote(&destination.path.to_string_lossy());
    let shortages = capacity.find_shortages(space, layout);
    let mut obstacles: Vec<_> = shortages
        .iter()
        .map(|shortage| format!("output {path} {shortage}"))
        .collect();
    if !absent.is_empty() {
        return Ok(obstacles);
    }
    let quote_name = |name: &str| quote(&destination.path.join(name).to_string_lossy());
    let status_of = |name: &str| status(&directory, name).map_err(|error| destination.error("examine", name, error));
    match status_of(CORPUS)? {
        Some(stat) if file_type(&stat) == FileType::Symlink => obstacles.push(format!(
            "output corpus path {} is a symbolic link, and documents would be written elsewhere; remove it",
            quote_name(CORPUS)
        )),
        Some(stat) if file_type(&stat) != FileType::Directory => obstacles.push(format!(
            "output corpus path {} is not a directory; remove it",
            quote_name(CORPUS)
        )),
        Some(stat) if !is_unfinished(&directory, &stat) => {
            let corpus =
                open_directory(&directory, CORPUS).map_err(|error| destination.error("open", CORPUS, error))?;
            let (count, first) =
                count_names(&corpus, stop).map_err(|error| destination.error("list", CORPUS, error))?;
            if let Some(first) = first {
                let entries = if count == 1 { "entry" } else { "entries" };
                obstacles.push(format!(
                    "output corpus directory {} already contains {count} {entries}, such as {}; adapting into it \
                     would mix two datasets: remove it or name another output",
                    quote_name(CORPUS),
                    quote(&first.to_string_lossy())
                ));
            }
        }
        _ => {}
    }
    for name in FILES {
        let what = name.split('.').next().unwrap_or(name);
        match status_of(name)? {
            Some(stat) if file_type(&stat) == FileType::Symlink => obstacles.push(format!(
                "output {what} path {} is a symbolic link; remove it",
                quote_name(name)
            )),
            Some(stat) if file_type(&stat) != FileType::RegularFile => obstacles.push(format!(
                "output {what} path {} is not a regular file; remove it",
                quote_name(name)
            )),
            _ => {}
        }
    }
    Ok(obstacles)
}
