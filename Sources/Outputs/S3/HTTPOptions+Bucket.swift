internal import EventLoops
package import Model

extension HTTPOptions {
    /// The same options for the bucket that these settings name: the address becomes the bucket's, with a
    /// slash at the end, to which keys are appended.
    ///
    /// The bucket is a part of the host name, or of the path with `bucket.path_style`, which many stores
    /// other than Amazon's need.
    /// - Throws: `OutputError` with code `invalidSetting`.
    package func ofBucket(_ s3: S3Settings) throws(OutputError) -> HTTPOptions {
        let text = settings.url?.text ?? "https://s3.\(s3.aws.region).amazonaws.com"
        guard let address = HTTPAddress(text), address.scheme == "https" || address.scheme == "http",
            address.query == nil, !address.hasCredentials
        else {
            throw OutputError(.invalidSetting, "the endpoint must have the form https://host")
        }
        let base = text.hasSuffix("/") ? String(text.dropLast()) : text
        let scheme = "\(address.scheme)://"
        let bucket =
            s3.pathStyle
            ? "\(base)/\(s3.bucket.percentEncoded)/"
            : "\(scheme)\(s3.bucket).\(base.dropFirst(scheme.count))/"
        var options = self
        options.settings.url = EndpointURL(bucket)
        return options
    }
}
