//! The `clover` binary.

fn main() -> std::process::ExitCode {
    clover::cli::run(std::env::args_os())
}
