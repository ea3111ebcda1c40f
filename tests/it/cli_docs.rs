//! `docs/from-azcopy.md` against the program: what it calls same or taken parses, what it calls refused is refused for that
//! reason, and no flag of AzCopy is missing.

use crate::cli_support::World;

/// Flags of `azcopy copy --help`, version 10.32.2, its global ones among them.
const AZCOPY: &str = "as-subdir await-continue await-open backup blob-tags blob-type block-blob-tier block-size-mb cache-control \
    cap-mbps check-length check-md5 check-version content-disposition content-encoding content-language content-type cpk-by-name \
    cpk-by-value debug-skip-files decompress disable-auto-decoding dry-run exclude-attributes exclude-blob-type \
    exclude-container exclude-path exclude-pattern exclude-regex follow-symlinks force-if-read-only from-to hardlinks help \
    include-after include-attributes include-before include-directory-stub include-path include-pattern include-regex \
    list-of-versions log-level metadata no-guess-mime-type output-level output-type overwrite page-blob-tier \
    posix-properties-style preserve-info preserve-last-modified-time preserve-owner preserve-permissions \
    preserve-posix-properties preserve-symlinks put-blob-size-mb put-md5 recursive s2s-detect-source-changed \
    s2s-handle-invalid-metadata s2s-preserve-access-tier s2s-preserve-blob-tags s2s-preserve-properties trailing-dot \
    trusted-microsoft-suffixes";

/// A value AzCopy's users would give; booleans need none.
fn value(flag: &str) -> &'static str {
    match flag {
        "--blob-tags" | "--metadata" => "=a=b",
        "--blob-type" => "=BlockBlob",
        "--block-blob-tier" => "=Hot",
        "--block-size-mb" | "--put-blob-size-mb" | "--cap-mbps" => "=0.25",
        "--cache-control" | "--content-disposition" | "--content-encoding" | "--content-language" | "--content-type" => "=x/y",
        "--from-to" => "=LocalBlob",
        "--check-md5" => "=LogOnly",
        "--posix-properties-style" => "=standard",
        "--hardlinks" => "=follow",
        "--include-after" => "=2020-01-01",
        "--include-before" => "=2100-01-01T00:00:00Z",
        "--include-path" => "=f.txt",
        "--include-pattern" | "--include-regex" => "=f.*",
        "--exclude-container" => "=other",
        "--s2s-handle-invalid-metadata" => "=RenameIfInvalid",
        "--exclude-path" | "--exclude-pattern" | "--exclude-regex" => "=other",
        "--list-of-files" => "=list",
        "--log-level" => "=ERROR",
        "--output-level" => "=essential",
        "--output-type" => "=text",
        "--overwrite" => "=ifSourceNewer",
        "--page-blob-tier" => "=None",
        "--trailing-dot" => "=Enable",
        "--trusted-microsoft-suffixes" => "=*.example.org",
        _ => "",
    }
}

/// Those that are refused on an upload.
const DOWNLOADS: &[&str] = &["--check-md5", "--decompress", "--preserve-last-modified-time"];

/// Flag, verdict, remark.
fn rows() -> Vec<(String, String, String)> {
    let document = include_str!("../../docs/from-azcopy.md");
    let rows = document.lines().filter(|line| line.starts_with("| `--"));
    rows.map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').splitn(3, '|').map(str::trim).collect();
        (cells[0].trim_matches('`').to_owned(), cells[1].to_owned(), cells[2].to_owned())
    })
    .collect()
}

#[test]
fn every_flag_of_azcopy_is_in_the_table() {
    let documented: Vec<String> = rows().into_iter().map(|(flag, ..)| flag).collect();
    for flag in AZCOPY.split_whitespace() {
        assert!(documented.contains(&format!("--{flag}")), "--{flag} is not in docs/from-azcopy.md");
    }
}

#[test]
fn flags_do_what_the_table_says() {
    let world = World::new();
    world.write("d/f.txt", "x");
    world.write("list", "f.txt\n");
    assert_eq!(world.run(&["copy", "d", "dev://box", "--recursive"]).code, 0);
    for (flag, verdict, remark) in rows() {
        let given = format!("{flag}{}", value(&flag));
        let (from, to) = match flag.as_str() {
            flag if DOWNLOADS.contains(&flag) => ("dev://box/d", "out"),
            // From account to account; where nothing is sent, nobody has to be there.
            "--exclude-container" => ("dev://", "http://127.0.0.1:9/devstoreaccount1"),
            flag if flag.starts_with("--s2s-") => ("dev://box/d", "dev://other"),
            _ => ("d", "dev://box"),
        };
        let ran = world.run(&["copy", from, to, "--dry-run", "--recursive", &given]);
        match verdict.as_str() {
            "same" | "taken" => assert_eq!(ran.code, 0, "{given}: {}", ran.stderr),
            "refused" => {
                let expected = format!("error: {flag} is refused: {remark}\n");
                assert!(ran.code == 2 && ran.stderr.starts_with(&expected), "{given}: {} {}", ran.code, ran.stderr);
            }
            other => panic!("{flag}: {other} is no verdict"),
        }
    }
}
