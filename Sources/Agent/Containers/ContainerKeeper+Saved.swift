internal import Configuration
internal import Containers
internal import EventLoops
internal import Queue

/// Copies in the queue's database.
extension ContainerKeeper {
    func loadSaved(_ slot: ContainerSlot) {
        Task(executorPreference: loop) {
            let saved = await self.readSaved(slot)
            await self.feed(slot, .saved(saved))
        }
    }

    private func readSaved(_ slot: ContainerSlot) async -> ContainerMachine.Saved {
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
            guard copy.version == kept.version else {
                throw ContainerError(.version, "its row says version \(kept.version), the document \(copy.version)")
            }
            return .copy(copy, etag: kept.etag, confirmed: kept.confirmed)
        } catch {
            return .refused(
                ContainerError(error.code, "the saved copy: \(error.description)"), version: max(kept.version, 0))
        }
    }

    /// Saves a copy; then, and only then, whoever waits for the refresh hears of its end.
    func keep(_ slot: ContainerSlot, _ copy: ContainerCopy, _ etag: String?, _ confirmed: Timestamp) {
        // Not what was fetched last: that may be refused while this one still waits to be saved.
        if let fetched = slot.fetched, fetched.copy == copy { slot.unsaved = fetched }
        slot.fetched = nil
        guard let unsaved = slot.unsaved, unsaved.copy == copy else { return }
        let saved = SavedContainer(version: copy.version, etag: etag, confirmed: confirmed, file: unsaved.file)
        let id = slot.settings.id
        slot.isSaving = true
        Task(executorPreference: loop) {
            do throws(QueueError) {
                try await self.store.saveContainer(id, saved)
                await self.kept(slot, copy, nil)
            } catch {
                await self.kept(slot, copy, error)
            }
        }
    }

    private func kept(_ slot: ContainerSlot, _ copy: ContainerCopy, _ error: QueueError?) {
        if let error {
            tell(slot, .failed(.saved, .ioError, message: "cannot save the document yet: \(error.message)"))
        }
        // A newer one has come meanwhile: whoever waits hears of that one.
        guard slot.unsaved?.copy == copy else { return publish() }
        slot.isSaving = false
        if error == nil { slot.unsaved = nil }
        feed(slot, .kept(error == nil))
        let ends = slot.heldEnds
        slot.heldEnds = []
        let failure = error.map {
            ContainerNote.failed(.network, .ioError, message: "it is in force, but not saved yet: \($0.message)")
        }
        for note in ends { tell(slot, failure ?? note) }
        publish()
    }

    func confirm(_ slot: ContainerSlot, _ confirmed: Timestamp) {
        let id = slot.settings.id
        Task(executorPreference: loop) {
            do throws(QueueError) {
                try await self.store.confirmContainer(id, at: confirmed)
            } catch {
                await self.noteUnsaved(slot, error)
            }
        }
    }

    private func noteUnsaved(_ slot: ContainerSlot, _ error: QueueError) {
        tell(slot, .failed(.saved, .ioError, message: "cannot save that the document was confirmed: \(error.message)"))
        publish()
    }
}
