@testable import Spool
import Testing

/// The phases of the reader's life, without a loop.
@Suite("The reader's life")
struct SpoolReaderLifeTests {
    @Test("it begins once, and stops once what is under way has ended")
    func fromStartToStop() async {
        var life = SpoolReaderLife()
        let before = life.postPump()
        let starts = [life.start(), life.start()]
        let posts = [life.postPump(), life.postPump()]
        #expect(!before && starts == [true, false] && posts == [true, false] && life.isRunning)
        life.pumpBegins()
        life.beginTask()
        await withCheckedContinuation { waiter in
            #expect(life.stop(waiter) == true)
            #expect(life.phase == .stopping)
            #expect(life.postPump() == true)
            let early = life.end()
            #expect(early == nil)
            life.endTask()
            let waiters = life.end() ?? []
            #expect(waiters.count == 1 && life.phase == .stopped)
            for waiter in waiters { waiter.resume() }
        }
        life.pumpBegins()
        let after = [life.postPump(), life.fail(), life.start()]
        #expect(after == [false, false, false])
        await withCheckedContinuation { waiter in
            #expect(life.stop(waiter) == false)
            waiter.resume()
        }
    }

    @Test("what never began is stopped at once, and does not begin afterwards")
    func stoppedBeforeItBegan() async {
        var life = SpoolReaderLife()
        await withCheckedContinuation { waiter in
            #expect(life.stop(waiter) == false)
            waiter.resume()
        }
        #expect(life.phase == .stopped)
        #expect(life.start() == false)
    }

    @Test("a commit that fails for good ends the reading, and nobody waits for it")
    func failure() {
        var life = SpoolReaderLife()
        let answers = [life.fail(), life.start(), life.fail()]
        #expect(answers == [false, true, true] && life.phase == .stopping)
        let waiters = life.end()
        #expect(waiters?.isEmpty == true)
    }
}
