internal import Configuration
internal import Containers
internal import Control
internal import EventLoops
internal import Model
internal import Outputs
internal import Logs

// Fetching published documents.
extension ContainerKeeper {
    /// The fetcher of a container; nil without a `url`, or if its settings are invalid: then the container
    /// works with its default file and its saved copy.
    func fetcher(of settings: ContainerSettings) -> DocumentFetcher? {
        guard let url = settings.url else { return nil }
        do throws(OutputError) {
            return try DocumentFetcher(
                url.text, caFile: settings.caFile, largest: SignedDocument.largest, userAgent: userAgent,
                on: loop,
                time: time)
        } catch {
            log.error("container cannot be fetched", ["container": settings.id, "hint": error.message])
            return nil
        }
    }

    /// Fetches a container's document and gives the result to the machine.
    func fetch(_ slot: ContainerSlot, _ etag: String?) {
        Task(executorPreference: loop) {
            let fetched = await self.fetched(slot, etag)
            await self.feed(slot, .fetched(fetched))
        }
    }

    /// The result of a fetch: the verified and compiled document, or the reason for the failure.
    private func fetched(_ slot: ContainerSlot, _ etag: String?) async -> ContainerMachine.Fetched {
        // No request is made in these cases: the result names the network or the settings as the cause, not
        // the server.
        guard isNetworkOn() else {
            return .failed(.noNetwork, "the network is switched off (`spoolship network on`)")
        }
        guard !offline.contains(slot.settings.id) else {
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
                .serverError, "the server answered \(status)\(ContainerKeeper.hint(status))", retryAfter: wait
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
                // Keep the bytes as served: the saved copy must carry its signatures, which are verified
                // again at the next start.
                slot.fetched = (copy, file)
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
            throw .notFetched("the server answered \(status)\(ContainerKeeper.hint(status))")
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

    /// Fetches what is missing or stale at once: a person has switched the network on.
    func networkIsOn() {
        for slot in slots { feed(slot, .networkChanged) }
    }

    /// Takes the result of a look at the routes, and fetches again what could not be reached before.
    ///
    /// - Parameters:
    ///   - routes: whether a route leads to each container, by its id.
    ///   - hasChanged: whether the default route has changed.
    func networkNews(_ routes: [String: Bool], hasChanged: Bool) {
        let before = offline
        offline = Set(routes.filter { !$0.value }.map(\.key))
        // A new default route may reach a server that the old one did not.
        for slot in slots
        where hasChanged || before.contains(slot.settings.id) && !offline.contains(slot.settings.id) {
            feed(slot, .networkChanged)
        }
    }
}
