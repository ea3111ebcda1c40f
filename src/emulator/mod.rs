//! An embedded Blob service, to try the client on, to test with, and to measure against.
