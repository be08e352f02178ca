import { memoryBed } from './chunk-ledger-bed.ts'
import { describeChunkLedger } from './chunk-ledger-suite.ts'

describeChunkLedger('memory', memoryBed)
