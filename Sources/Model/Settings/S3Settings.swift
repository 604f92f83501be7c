/// `[destination.s3]`: the bucket, the names of objects, and the credentials.
public struct S3Settings: Sendable, Equatable {
    package var bucket = ""
    /// Whether the bucket is part of the path (`https://host/bucket/key`) or of the host name.
    package var pathStyle = false
    /// Name of an object; by default `spoolship/dt={date}/hour={hour}/{install_id}/{batch_id}`.
    package var key = Template(
        [
            .text("spoolship/dt="), .field(.batchDate), .text("/hour="), .field(.batchHour), .text("/"),
            .field(.installID), .text("/"), .field(.batchID),
        ], for: .key)
    /// Whether an existing object is not written again (`If-None-Match: *`). Some servers do not
    /// support it.
    package var ifNoneMatch = true
    package var storageClass: String?
    package var serverSideEncryption: S3Encryption?
    package var aws = AWSSettings()

    package init() {}
}
