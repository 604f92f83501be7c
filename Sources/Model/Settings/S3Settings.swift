/// `[destination.s3]`: the bucket, the names of objects, and the credentials.
public struct S3Settings: Sendable, Equatable {
    package var bucket = ""
    package var pathStyle = false
    /// What an object is called: `spoolship/dt={date}/hour={hour}/{install_id}/{batch_id}`.
    package var key = Template(
        [
            .text("spoolship/dt="), .field(.batchDate), .text("/hour="), .field(.batchHour), .text("/"),
            .field(.installID), .text("/"), .field(.batchID),
        ], for: .key)
    package var ifNoneMatch = true
    package var storageClass: String?
    package var serverSideEncryption: S3Encryption?
    package var aws = AWSSettings()

    package init() {}
}
