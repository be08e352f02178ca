import { embeddedPods } from '../support/stack.ts'
import { describeReplays } from './replayed-conversations.ts'

describeReplays('embedded engine', embeddedPods({ count: 1, slots: 2 }))
