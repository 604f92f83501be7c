internal import Configuration
internal import Containers
internal import Control
internal import EventLoops
internal import Logs
internal import Model
internal import Outputs
internal import Queue

/// Where documents of containers come from: published files, and the copies that the queue's database has.
/// Each document is verified and compiled. Runs on the keeper's loop, as its slots do.
struct DocumentSources {
    let loop: EventLoop
    let time: any TimeSource
    let log: Log
    /// The queue's database, which has the saved copies.
    let store: QueueStore
    let userAgent: String
    /// False if a person has switched the network off: then nothing is fetched.
    let isNetworkOn: @Sendable () -> Bool

    /// The fetcher of a container; nil without a `url`, or if its settings are invalid: then the container
    /// works with its default file and its saved copy.
    func fetcher(of settings: ContainerSettings) -> DocumentFetcher? {
        guard let url = settings.url else { return nil }
        do throws(OutputError) {
            return try DocumentFetcher(
                url.text, caFile: settings.caFile, largest: SignedDocument.largest, userAgent: userAgent,
                on: loop, time: time)
        } catch {
            log.error("container cannot be fetched", ["container": settings.id, "hint": error.message])
            return nil
        }
    }

    /// The result of a fetch: the verified and compiled document, or the reason for the failure.
    ///
    /// - Parameter hasRoute: whether a route leads to the server.
    func fetched(
        _ slot: ContainerSlot, etag: String?, hasRoute: Bool
    ) async -> ContainerMachine.Fetched {
        // No request is made in these cases: the result names the network or the settings as the cause, not
        // the server.
        guard isNetworkOn() else {
            return .failed(.noNetwork, "the network is switched off (`spoolship network on`)")
        }
        guard hasRoute else {
            return .failed(.noNetwork, "there is no route to it")
        }
        guard let fetcher = slot.fetcher else {
            return .failed(.unknownError, "its url or ca_file cannot be used")
        }
        let result = await fetcher.fetch(etag: etag)
        switch result {
        case .notModified: return .notModified
        case .status(let status, let wait):
            return .failed(
                .serverError, "the server answered \(status)\(DocumentSources.hint(status))", retryAfter: wait
            )
        case .tooLarge:
            return .refused(ContainerError(.limit, "it is larger than \(SignedDocument.largest) bytes"))
        case .failed(let failure):
            return .failed(failure.kind == .local ? .unknownError : .networkError, failure.message)
        case .document(let file, let etag):
            do throws(ContainerError) {
                let signed = try SignedDocument(file)
                try signed.verify(by: slot.keys)
                let copy = try slot.take(signed.document)
                slot.saving.noteFetched(copy, file: file)
                return .copy(copy, etag: etag)
            } catch {
                return .refused(ContainerError(error.code, error.description))
            }
        }
    }

    /// Fetches the file at a person's link like a container's own document, but within a few seconds, because
    /// the person waits.
    func fetched(_ link: String, for slot: ContainerSlot) async throws(ControlRefusal) -> [UInt8] {
        guard isNetworkOn() else { throw .notFetched("the network is switched off (`spoolship network on`)") }
        let fetcher = try relaying(
            try DocumentFetcher(
                link, caFile: slot.settings.caFile, largest: SignedDocument.largest, userAgent: userAgent,
                connectTimeout: .seconds(4), timeout: .seconds(8), on: loop)
        ) { (error: OutputError) in ControlRefusal.notFetched(error.message) }
        switch await fetcher.fetch(etag: nil) {
        case .document(let file, _): return file
        case .notModified: throw .notFetched("the server answered 304")
        case .status(let status, _):
            throw .notFetched("the server answered \(status)\(DocumentSources.hint(status))")
        case .tooLarge: throw .notFetched("it is larger than \(SignedDocument.largest) bytes")
        case .failed(let failure): throw .notFetched(failure.message)
        }
    }

    /// Advice for a status that a mistake in `url` causes.
    private static func hint(_ status: Int) -> String {
        switch status {
        case 300..<400: "; redirects are not followed, so set url to the final address"
        case 404, 410: "; is it published there?"
        default: ""
        }
    }

    /// The saved copy, verified as if it had just been fetched: a key may have been removed from the
    /// configuration meanwhile.
    func saved(_ slot: ContainerSlot) async -> ContainerMachine.Saved {
        let kept: SavedContainer?
        do throws(QueueError) {
            kept = try await store.savedContainer(slot.settings.id)
        } catch {
            return .failed(error.message)
        }
        guard let kept else { return .missing }
        do throws(ContainerError) {
            let file = try SignedDocument(kept.file)
            try file.verify(by: slot.keys)
            let copy = try slot.take(file.document)
            // The version in the row is compared with published ones; a row that disagrees with its document
            // is damaged.
            guard copy.version == kept.version else {
                throw ContainerError(
                    .version, "its row says version \(kept.version), the document \(copy.version)")
            }
            return .copy(copy, etag: kept.etag, confirmed: kept.confirmed)
        } catch {
            return .refused(
                // The version still counts, so that no older document replaces the damaged copy.
                ContainerError(error.code, "the saved copy: \(error.description)"),
                version: max(kept.version, 0))
        }
    }
}
