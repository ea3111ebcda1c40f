//! Containers: create, properties, metadata, access policies, delete.

use super::Ctx;
use super::common::stamp;
use super::describe::lease_headers;
use crate::emulator::conditions::{Conditions, Target, Use};
use crate::emulator::errors::{Failure, Outcome};
use crate::emulator::http::{Answer, Head};
use crate::emulator::lease::{self, Guard, Of};
use crate::emulator::names;
use crate::emulator::state::{Access, Info, Policy};
use crate::emulator::time;
use crate::emulator::xml;

/// Most stored access policies of a container ("Establishing a stored access policy").
const MAX_POLICIES: usize = 5;

fn access(head: &Head) -> Outcome<Access> {
    match head.header("x-ms-blob-public-access") {
        None => Ok(Access::Private),
        Some("blob") => Ok(Access::Blob),
        Some("container") => Ok(Access::Container),
        Some(other) => Err(Failure::header("x-ms-blob-public-access", other)),
    }
}

/// Create Container.
///
/// # Errors
/// By "Create Container": 409 if it is there or its name is still being freed.
pub(crate) fn create(ctx: &Ctx<'_>) -> Outcome {
    let etag = ctx.model.unique(ctx.now);
    let info =
        Info { etag, modified: ctx.now, metadata: names::metadata(ctx.head)?, access: access(ctx.head)?, ..Info::default() };
    ctx.model.create_container(ctx.account, &ctx.container, info, ctx.now)?;
    Ok(stamp(Answer::new(201), etag, ctx.now))
}

/// Checks a lease id where a wrong one is refused but none is needed.
fn check_lease(ctx: &Ctx<'_>, info: &Info, guard: Guard) -> Outcome<()> {
    lease::check(info.lease.as_ref(), lease::id_of(ctx.head)?, Of::Container, guard, ctx.now)
}

fn check_conditions(ctx: &Ctx<'_>, info: &Info) -> Outcome<()> {
    let target = Target { etag: info.etag, modified: info.modified, tags: &[] };
    Conditions::of(ctx.head, Use::Write)?.check(Some(target), Use::Write)
}

/// Get Container Properties and Get Container Metadata, which differ in what they leave out.
///
/// # Errors
/// By "Get Container Properties".
pub(crate) fn properties(ctx: &Ctx<'_>) -> Outcome {
    let container = ctx.open()?;
    let held = container.hold(ctx.model, &ctx.account.name)?;
    let info = &held.info;
    check_lease(ctx, info, Guard::Read)?;
    let mut answer = stamp(Answer::new(200), info.etag, info.modified);
    for (name, value) in &info.metadata {
        answer.header(format!("x-ms-meta-{name}"), value.clone());
    }
    if ctx.head.parameter("comp") == Some("metadata") {
        return Ok(answer);
    }
    lease_headers(&mut answer, info.lease.as_ref(), ctx.now);
    if let Some(access) = info.access.name().filter(|_| ctx.since("2017-07-29")) {
        answer.header("x-ms-blob-public-access", access);
    }
    if ctx.since("2017-11-09") {
        answer.header("x-ms-has-immutability-policy", "false");
        answer.header("x-ms-has-legal-hold", "false");
    }
    if ctx.since("2019-07-07") {
        answer.header("x-ms-default-encryption-scope", "$account-encryption-key");
        answer.header("x-ms-deny-encryption-scope-override", "false");
    }
    if ctx.since("2020-10-02") {
        answer.header("x-ms-immutable-storage-with-versioning-enabled", "false");
    }
    Ok(answer)
}

/// Set Container Metadata: all of it is replaced.
///
/// # Errors
/// By "Set Container Metadata".
pub(crate) fn set_metadata(ctx: &Ctx<'_>) -> Outcome {
    let metadata = names::metadata(ctx.head)?;
    change(ctx, |info| info.metadata = metadata)
}

fn change(ctx: &Ctx<'_>, apply: impl FnOnce(&mut Info)) -> Outcome {
    let container = ctx.open()?;
    let mut held = container.hold(ctx.model, &ctx.account.name)?;
    let mut info = held.info.clone();
    check_lease(ctx, &info, Guard::Read)?;
    check_conditions(ctx, &info)?;
    apply(&mut info);
    info.etag = ctx.model.unique(ctx.now);
    info.modified = ctx.now;
    let answer = stamp(Answer::new(200), info.etag, info.modified);
    held.put_info(info)?;
    Ok(answer)
}

/// Delete Container. Its name stays taken for a while.
///
/// # Errors
/// By "Delete Container": a lease on it protects it.
pub(crate) fn delete(ctx: &Ctx<'_>) -> Outcome {
    let check = |info: &Info| {
        check_lease(ctx, info, Guard::Write)?;
        check_conditions(ctx, info)
    };
    ctx.model.delete_container(ctx.account, &ctx.container, ctx.now, &check)?;
    Ok(Answer::new(202))
}

/// Get Container ACL.
///
/// # Errors
/// By "Get Container ACL".
pub(crate) fn get_acl(ctx: &Ctx<'_>) -> Outcome {
    let container = ctx.open()?;
    let held = container.hold(ctx.model, &ctx.account.name)?;
    let info = &held.info;
    check_lease(ctx, info, Guard::Read)?;
    let mut answer = stamp(Answer::new(200), info.etag, info.modified).with("Content-Type", "application/xml");
    if let Some(access) = info.access.name() {
        answer.header("x-ms-blob-public-access", access);
    }
    let mut text = String::from(xml::HEADER);
    if info.policies.is_empty() {
        text.push_str("<SignedIdentifiers />");
        return Ok(answer.body(text.into_bytes()));
    }
    text.push_str("<SignedIdentifiers>");
    for policy in &info.policies {
        text.push_str("<SignedIdentifier>");
        xml::element(&mut text, "Id", &policy.id);
        let fields = [("Start", &policy.start), ("Expiry", &policy.expiry), ("Permission", &policy.permission)];
        if fields.iter().any(|(_, value)| value.is_some()) {
            text.push_str("<AccessPolicy>");
            for (name, value) in fields {
                if let Some(value) = value {
                    // Times come back with all their digits, however they were sent [R].
                    let told = time::parse_iso(value).filter(|_| name != "Permission").map(time::iso);
                    xml::element(&mut text, name, told.as_deref().unwrap_or(value));
                }
            }
            text.push_str("</AccessPolicy>");
        }
        text.push_str("</SignedIdentifier>");
    }
    text.push_str("</SignedIdentifiers>");
    Ok(answer.body(text.into_bytes()))
}

/// Set Container ACL: policies and public access are replaced; without the header the container becomes private.
///
/// # Errors
/// By "Set Container ACL"; more than five policies, or an id over 64 characters, are 400 `InvalidXmlDocument` [I].
pub(crate) fn set_acl(ctx: &Ctx<'_>, body: &[u8]) -> Outcome {
    let access = access(ctx.head)?;
    let policies = if body.is_empty() { Vec::new() } else { policies(body)? };
    change(ctx, |info| {
        info.access = access;
        info.policies = policies;
    })
}

fn policies(body: &[u8]) -> Outcome<Vec<Policy>> {
    let root = xml::parse(body, "SignedIdentifiers")?;
    if root.children.len() > MAX_POLICIES {
        return Err(Failure::xml(0, 0, ""));
    }
    let filled = |element: Option<&xml::Element>, name: &str| {
        element.and_then(|e| e.text_of(name)).map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let mut out = Vec::new();
    for element in &root.children {
        let terms = element.child("AccessPolicy");
        let id = element.text_of("Id").unwrap_or("").to_owned();
        if id.is_empty() || id.chars().count() > 64 {
            return Err(element.refuse(body, ""));
        }
        let policy = Policy {
            id,
            start: filled(terms, "Start"),
            expiry: filled(terms, "Expiry"),
            permission: filled(terms, "Permission"),
        };
        if policy.permission.as_deref().is_some_and(|p| !p.chars().all(|c| "racwdxyltfmeopi".contains(c))) {
            return Err(Failure::xml(0, 0, ""));
        }
        out.push(policy);
    }
    Ok(out)
}
