import { createMemorySlotLedger } from '../../../src/kvcache/slots/memory-slot-ledger.ts'
import { describeSlotTurns } from './slot-turns-suite.ts'
import { describeSlotUpkeep } from './slot-upkeep-suite.ts'

const make = async () => ({ ledger: createMemorySlotLedger(), close: async () => {} })
describeSlotTurns('memory', make)
describeSlotUpkeep('memory', make)
