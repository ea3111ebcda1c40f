-- A journal as version 1 wrote it, with one job and three transfers.
CREATE TABLE job (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    source TEXT NOT NULL,
    destination TEXT NOT NULL,
    command TEXT NOT NULL,
    started INTEGER NOT NULL,
    ended INTEGER,
    status TEXT,
    error TEXT,
    runs INTEGER NOT NULL DEFAULT 1,
    listed INTEGER,
    done INTEGER NOT NULL DEFAULT 0,
    failed INTEGER NOT NULL DEFAULT 0,
    skipped INTEGER NOT NULL DEFAULT 0,
    bytes INTEGER NOT NULL DEFAULT 0,
    source_root TEXT,
    target_root TEXT
);
CREATE TABLE transfer (
    n INTEGER PRIMARY KEY,
    form INTEGER NOT NULL,
    source TEXT NOT NULL,
    target TEXT,
    outcome INTEGER NOT NULL,
    reason INTEGER,
    queued INTEGER NOT NULL,
    started INTEGER,
    finished INTEGER NOT NULL,
    modified INTEGER,
    bytes INTEGER,
    blocks INTEGER NOT NULL,
    retries INTEGER NOT NULL
);
CREATE INDEX transfer_left ON transfer (outcome) WHERE outcome <> 0;
CREATE TABLE reason (job INTEGER NOT NULL, n INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY (job, n)) WITHOUT ROWID;
INSERT INTO job VALUES (1, '0b9d6c1e-8f7a-4d0e-9b7e-2f6a1c3d5e7f', './docs', 'https://ACCOUNT.blob.core.windows.net/box', '{}',
    1767323045000000, 1767323050000000, 'CompletedWithErrorsAndSkipped', NULL, 1, 3, 1, 1, 1, 7, './', '');
INSERT INTO transfer VALUES (4294967296, 1, 'docs/a', NULL, 0, NULL, 1000, 20, 300000, 1767323000000000000, 7, 0, 1);
INSERT INTO transfer VALUES (4294967297, 1, 'docs/b', NULL, 1, 0, 1000, 30, 400000, 1767323000000000000, 7, 0, 0);
INSERT INTO transfer VALUES (4294967298, 2, 'docs/l', NULL, 2, 1, 1000, NULL, 0, NULL, NULL, 0, 0);
INSERT INTO reason VALUES (1, 0, 'AccessRefused: 403 AuthenticationFailed');
INSERT INTO reason VALUES (1, 1, 'symbolic link');
PRAGMA user_version = 1;
