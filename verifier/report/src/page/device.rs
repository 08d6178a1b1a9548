//! The page of a program on which a device of Vulkan and the interpreter differ.

use super::document::document;
use maud::html;
use serde_json::Value;
use std::fs;
use std::io;
use std::path::Path;

/// Returns the page of a bundle of `fuzz --vulkan` or `run --vulkan`; none if the folder is another bundle.
///
/// # Errors
/// If a file of it cannot be read.
pub fn of_device(folder: &Path) -> io::Result<Option<String>> {
    let Ok(text) = fs::read_to_string(folder.join("failure.json")) else { return Ok(None) };
    let Ok(failure) = serde_json::from_str::<Value>(&text) else { return Ok(None) };
    if failure["kind"] != "vulkan" {
        return Ok(None);
    }
    let text = |name: &str| failure[name].as_str().unwrap_or_default().to_owned();
    let list = |name: &str| {
        let names = failure[name].as_array().into_iter().flatten().filter_map(Value::as_str);
        names.collect::<Vec<_>>().join(", ")
    };
    let word = |of: &Value, name: &str| of[name].as_u64().map_or_else(String::new, |bits| format!("{bits:#010x}"));
    let number = |of: &Value, name: &str| of[name].as_u64().unwrap_or_default();
    let differences = failure["differences"].as_array().cloned().unwrap_or_default();
    let mut files = Vec::new();
    for (name, title) in [
        ("program.nir", "The program"),
        ("device.nir", "The program with the bounds of its accesses, as it was compared"),
        ("program.spvasm", "The module that the device got"),
    ] {
        let path = folder.join(name);
        if path.is_file() {
            files.push((title, fs::read_to_string(path)?));
        }
    }
    let title = format!("{}: {}", text("device"), text("message"));
    let body = html! {
        header {
            p.kind { "ir3-equiv " (env!("CARGO_PKG_VERSION")) " · " b { (text("verdict")) } }
            h1 { (text("message")) }
            dl.facts {
                div { dt { "Device" } dd { (text("device")) } }
                @if failure["profile"].is_string() {
                    div { dt { "Program" } dd { "profile " (text("profile")) ", seed " (failure["seed"]) } }
                }
                div { dt { "Instructions" } dd { (failure["instructions"]) @if failure["reduced"] == true { ", reduced" } } }
                @if !list("open").is_empty() { div { dt { "Left open by the specification" } dd { (list("open")) } } }
                @if !list("replaced").is_empty() { div { dt { "Replaced" } dd { (list("replaced")) } } }
            }
            p.note { "See it again, in the folder of the bundle (README.md has the driver):" }
            div.command.mono { "ir3-equiv run program.nir --vulkan --env env.json" }
        }
        main {
            @if !differences.is_empty() {
                section id="values" {
                    h2 { "Words that differ" }
                    table {
                        thead { tr { th { "resource" } th { "byte" } th { "interpreter" } th { "device" } th { "open bits" } } }
                        tbody {
                            @for it in &differences {
                                tr {
                                    td { (it["buffer"].as_str().unwrap_or_default()) }
                                    td { (number(it, "byte")) }
                                    td { code { (word(it, "expected")) } }
                                    td { code { (word(it, "actual")) } }
                                    td { code { (word(it, "open")) } @if it["stored"] == false { " not stored by the program" } }
                                }
                            }
                        }
                    }
                }
            }
            @for (title, text) in &files {
                section {
                    h2 { (title) }
                    pre { (text) }
                }
            }
        }
    };
    Ok(Some(document(&title, body).into_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_of_a_device_has_a_page() {
        let folder = std::env::temp_dir().join(format!("ir3-equiv-device-page-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let write = |name: &str, text: &str| fs::write(folder.join(name), text).expect("a file");
        write("failure.json", r#"{ "kind": "other" }"#);
        assert_eq!(of_device(&folder).expect("files"), None);
        let difference = r#"{ "buffer": "8", "byte": 12, "expected": 1, "actual": 2, "open": 0, "stored": true }"#;
        write(
            "failure.json",
            &format!(r#"{{ "kind": "vulkan", "message": "a < b", "device": "x", "differences": [{difference}] }}"#),
        );
        write("program.nir", "impl main");
        let page = of_device(&folder).expect("files").expect("a page");
        assert!(page.contains("a &lt; b") && page.contains("0x00000002") && page.contains("impl main"), "{page}");
        fs::remove_dir_all(folder).expect("to remove it");
    }
}
