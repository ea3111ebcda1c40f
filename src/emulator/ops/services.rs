//! The account's own: service properties, replication stats, account information.

use super::Ctx;
use crate::emulator::errors::{Failure, Outcome};
use crate::emulator::http::{Answer, plain_number};
use crate::emulator::state::{Service, lock};
use crate::emulator::time;
use crate::emulator::xml::{self, Element};

/// Get Account Information.
///
/// # Errors
/// None.
pub(crate) fn account(ctx: &Ctx<'_>) -> Outcome {
    let mut answer = Answer::new(200).with("x-ms-sku-name", "Standard_LRS").with("x-ms-account-kind", "StorageV2");
    if ctx.since("2019-07-07") {
        answer.header("x-ms-is-hns-enabled", "false");
    }
    Ok(answer)
}

/// Get Blob Service Stats: the secondary is this same store, and never behind.
///
/// # Errors
/// None.
pub(crate) fn stats(ctx: &Ctx<'_>) -> Outcome {
    let text = format!(
        "{}<StorageServiceStats><GeoReplication><Status>live</Status><LastSyncTime>{}</LastSyncTime></GeoReplication></StorageServiceStats>",
        xml::HEADER,
        time::http_date(ctx.now)
    );
    Ok(Answer::new(200).with("Content-Type", "application/xml").body(text.into_bytes()))
}

/// The parts of the properties, in the order they are told, with what they are before anybody sets them, and the version that
/// brought them.
const PARTS: &[(&str, &str, &str)] = &[
    (
        "Logging",
        "<Logging><Version>1.0</Version><Read>false</Read><Write>false</Write><Delete>false</Delete><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging>",
        "",
    ),
    (
        "HourMetrics",
        "<HourMetrics><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs><RetentionPolicy><Enabled>true</Enabled><Days>7</Days></RetentionPolicy></HourMetrics>",
        "",
    ),
    (
        "MinuteMetrics",
        "<MinuteMetrics><Version>1.0</Version><Enabled>false</Enabled><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></MinuteMetrics>",
        "",
    ),
    ("Cors", "<Cors />", ""),
    ("DeleteRetentionPolicy", "<DeleteRetentionPolicy><Enabled>false</Enabled></DeleteRetentionPolicy>", "2017-07-29"),
    ("StaticWebsite", "<StaticWebsite><Enabled>false</Enabled></StaticWebsite>", "2018-03-28"),
    ("DefaultServiceVersion", "", ""),
];

/// The elements within parts, in the order they are told, however they were sent [R].
const WITHIN: &[&str] = &[
    "Version",
    "Read",
    "Write",
    "Delete",
    "Enabled",
    "IncludeAPIs",
    "Days",
    "AllowPermanentDelete",
    "RetentionPolicy",
    "IndexDocument",
    "DefaultIndexDocumentPath",
    "ErrorDocument404Path",
    "AllowedMethods",
    "AllowedOrigins",
    "AllowedHeaders",
    "ExposedHeaders",
    "MaxAgeInSeconds",
];

/// Get Blob Service Properties.
///
/// # Errors
/// None.
pub(crate) fn get_properties(ctx: &Ctx<'_>) -> Outcome {
    let service = lock(&ctx.account.service).clone();
    let mut text = format!("{}<StorageServiceProperties>", xml::HEADER);
    for (name, default, since) in PARTS {
        if ctx.since(since) {
            text.push_str(service.parts.get(*name).map_or(default, String::as_str));
        }
    }
    text.push_str("</StorageServiceProperties>");
    Ok(Answer::new(200).with("Content-Type", "application/xml").body(text.into_bytes()))
}

/// Set Blob Service Properties: the parts named are replaced. Retention and the default version are acted upon; the others are
/// kept and told again, as there is nothing here that logs, measures or serves browsers.
///
/// # Errors
/// By "Set Blob Service Properties": 400 `InvalidXmlDocument` for more than five CORS rules or a retention outside 1 to 365.
pub(crate) fn set_properties(ctx: &Ctx<'_>, body: &[u8]) -> Outcome {
    let root = xml::parse(body, "StorageServiceProperties")?;
    let mut service: Service = lock(&ctx.account.service).clone();
    for part in &root.children {
        check(body, part)?;
        let name = PARTS.iter().find(|(name, ..)| *name == part.name).ok_or_else(|| part.refuse(body, ""))?.0;
        match name {
            "DefaultServiceVersion" => service.default_version = Some(part.text.clone()),
            "DeleteRetentionPolicy" => service.keep_deleted_days = retention(part),
            _ => {}
        }
        let mut text = String::new();
        write(&mut text, part);
        service.parts.insert(name.to_owned(), text);
    }
    ctx.model.put_service(ctx.account, service)?;
    Ok(Answer::new(202))
}

fn is_true(element: &Element, name: &str) -> bool {
    element.text_of(name).is_some_and(|text| text.eq_ignore_ascii_case("true"))
}

fn retention(policy: &Element) -> Option<u64> {
    is_true(policy, "Enabled").then(|| policy.text_of("Days").and_then(plain_number)).flatten()
}

fn check(body: &[u8], part: &Element) -> Outcome<()> {
    if part.name == "Cors" && part.children.len() > 5 {
        return Err(Failure::xml(0, 0, ""));
    }
    for policy in part.children.iter().chain([part]).filter(|e| e.name.ends_with("RetentionPolicy") && is_true(e, "Enabled")) {
        if !matches!(retention(policy), Some(1..=365)) {
            return Err(policy.refuse(body, "Retention days must be greater than 0 and less than or equal to 365 days."));
        }
    }
    Ok(())
}

fn write(out: &mut String, element: &Element) {
    if element.children.is_empty() {
        // Booleans come back in lower case, however they were sent.
        let text = match element.text.trim() {
            "True" | "TRUE" => "true",
            "False" | "FALSE" => "false",
            other => other,
        };
        // Whole names of headers come before prefixes.
        let is_prefix = |name: &&str| name.ends_with('*');
        let sorted = ["AllowedHeaders", "ExposedHeaders"].contains(&element.name.as_str()).then(|| {
            let mut names: Vec<&str> = text.split(',').collect();
            names.sort_by_key(is_prefix);
            names.join(",")
        });
        xml::element(out, &element.name, sorted.as_deref().unwrap_or(text));
        return;
    }
    out.push_str(&format!("<{}>", element.name));
    let place = |child: &&Element| WITHIN.iter().position(|name| *name == child.name).unwrap_or(WITHIN.len());
    let mut children: Vec<&Element> = element.children.iter().collect();
    children.sort_by_key(place);
    children.into_iter().for_each(|child| write(out, child));
    out.push_str(&format!("</{}>", element.name));
}
