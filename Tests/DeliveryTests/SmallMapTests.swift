import TestKit
import Testing

@testable import Delivery

@Suite("A small map")
struct SmallMapTests {
    @Test("it holds what a dictionary would, in the order of the keys", arguments: [1, 2, 3] as [UInt64])
    func agreesWithADictionary(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var map = SmallMap<Int, [Int]>()
        var model: [Int: [Int]] = [:]
        for step in 0..<3_000 {
            let key = Int.random(in: 0..<12, using: &random)
            switch Int.random(in: 0..<6, using: &random) {
            case 0:
                map[key] = nil
                model[key] = nil
            case 1: #expect(map.removeValue(forKey: key) == model.removeValue(forKey: key))
            case 2:
                map.update(key) { $0.append(step) }
                model[key]?.append(step)
            case 3:
                map.updateAll { key, value in value.append(key) }
                for key in model.keys { model[key]?.append(key) }
            default:
                map[key] = [step]
                model[key] = [step]
            }
            let sorted = model.sorted { $0.key < $1.key }
            #expect(
                map.keys == sorted.map(\.key) && map.values == sorted.map(\.value),
                "seed \(seed), step \(step)")
            #expect(map.count == model.count && map.isEmpty == model.isEmpty)
            #expect(map[key] == model[key] && map.contains(key) == (model[key] != nil))
            #expect(map.look(key) { $0.first } == model[key]?.first)
            let isLong = { (value: [Int]) in value.count > 2 }
            #expect(map.count(where: isLong) == model.values.count(where: isLong))
            #expect(map.contains(where: isLong) == model.values.contains(where: isLong))
            #expect(map.keys(where: isLong) == sorted.filter { isLong($0.value) }.map(\.key))
            #expect(map.firstKey(where: isLong) == sorted.first { isLong($0.value) }?.key)
        }
        var seen: [Int] = []
        map.forEach { key, _ in seen.append(key) }
        #expect(seen == model.keys.sorted())
    }
}
