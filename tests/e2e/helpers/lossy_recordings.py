# SPDX-License-Identifier: Apache-2.0
"""Recordings with losses, and what krait view has to say of them."""

from wall_made import CODES

# main is open all the time; the recording was switched off from 200 us to 700 us, and 5 events were lost from 900 us to 1200 us.
CUT = CODES + """0us call 1
200us stack 0
200us recording 0
700us recording 1
710us frame 1 0
710us stack 1
800us call 2
850us ccall 3
900us creturn
packet 5
1200us frame 1 0
1200us stack 1
1500us return
"""
# The same with waits for the GIL, a pause and a loss.
MISSED = CODES + """0us call 1
100us call 2
300us gilwait 6
350us giltake
400us ccall 3
500us creturn
600us return
650us stack 0
650us recording 0
700us recording 1
710us frame 1 0
710us stack 1
packet 9
800us frame 1 0
800us stack 1
1000us return
"""
# Where the canvas has a colour: its columns, by line.
COLUMNS_OF = """([r, g, b]) => {
  const canvas = document.querySelector("canvas.lanes"), data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data, lines = {};
  for (let i = 0; i < data.length; i += 4) {
    if (data[i] === r && data[i + 1] === g && data[i + 2] === b) (lines[Math.floor(i / 4 / canvas.width)] ??= []).push(i / 4 % canvas.width);
  }
  return [canvas.width, Object.values(lines)];
}"""
