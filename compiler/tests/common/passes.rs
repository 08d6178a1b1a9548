//! The ir3 of a log.

/// The `AFTER: …` sections of a log: the pass, and the text with its prefixes.
pub fn passes(log: &str) -> impl Iterator<Item = (&str, &str)> {
    const START: &str = "MESA: info: AFTER: ";
    let starts = log.match_indices(START).map(|(at, _)| at).filter(|&at| at == 0 || log.as_bytes()[at - 1] == b'\n');
    starts.map(move |at| {
        let section = &log[at + START.len()..];
        let (title, body) = section.split_once('\n').unwrap_or((section, ""));
        // Up to the next section, which has no indentation and is not a block.
        let mut end = 0;
        for line in body.split_inclusive('\n') {
            let Some(bare) = line.strip_prefix("MESA: info: ") else { break };
            if !bare.starts_with(['\t', '}']) && !bare.starts_with("block") && !bare.starts_with("(jp)block") {
                break;
            }
            end += line.len();
        }
        (title.trim_end_matches(':'), &body[..end])
    })
}
