/// `[destination.s3]`: which bucket, what objects are called, and who writes them.
public struct S3Settings: Sendable, Equatable {
    package var bucket = ""
    package var pathStyle = false
    /// The template of an object's key.
    public var key = "spoolship/dt={date}/hour={hour}/{install_id}/{batch_id}"
    package var ifNoneMatch = true
    package var storageClass: String?
    package var serverSideEncryption: S3Encryption?
    /// In which region, and who writes.
    package var aws = AWSSettings()

    package init() {}
}
