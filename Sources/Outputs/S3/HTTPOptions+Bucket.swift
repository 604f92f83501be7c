internal import EventLoops
internal import Model

extension HTTPOptions {
    /// The same for a bucket of the settings' service: requests go to its address, which ends with a slash, and keys are added.
    ///
    /// - Throws: `OutputError` with code `invalidSetting`.
    package func ofBucket() throws(OutputError) -> HTTPOptions {
        let s3 = settings.s3
        let text = settings.url?.text ?? "https://s3.\(s3.aws.region).amazonaws.com"
        guard let address = HTTPAddress(text), address.scheme == "https" || address.scheme == "http",
            address.query == nil, !address.hasCredentials
        else {
            throw OutputError(.invalidSetting, "the endpoint must have the form https://host")
        }
        let base = text.hasSuffix("/") ? String(text.dropLast()) : text
        let scheme = "\(address.scheme)://"
        let place =
            s3.pathStyle
            ? "\(base)/\(s3.bucket.percentEncoded)/" : "\(scheme)\(s3.bucket).\(base.dropFirst(scheme.count))/"
        var options = self
        options.settings.url = EndpointURL(place)
        return options
    }
}
