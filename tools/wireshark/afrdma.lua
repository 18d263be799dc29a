-- SPDX-License-Identifier: GPL-2.0
-- Copyright (C) 2026 AF_RDMA maintainers
--
-- Wireshark dissector for AF_RDMA: the TCP option, HELLO and the frames on TCP, the private data of
-- the connection manager, and the immediates of RoCE writes.
--
--	tshark -X lua_script:tools/wireshark/afrdma.lua -r CAPTURE
--
-- The format is that of afrdma-wire.rst, and each check of a field is one that net/afrdma/proto
-- makes. selftests/lint/wire_doc.py compares the tables below with the headers there. iWARP is not
-- decoded.
--
-- State is collected when a packet is dissected for the first time, since packets may be dissected
-- again later, in any order.

local afrdma = Proto("afrdma", "AF_RDMA")
local after = Proto("afrdma_after", "AF_RDMA, in packets that other dissectors decode")

local MAGIC = "f7414652444d4101"	-- AFR_HELLO_MAGIC
local EXID, KIND, VERSION, SERVER = 0xaf4d41d7, 254, 1, 1
local CM_MAGIC = 0xaf4d41d8
local HELLO_MAX, RING_MIN, RING_MAX = 512, 16384, 2 ^ 26
local BODY_MAX = 64 * 1024 + 8
local OFFSET_MAX = UInt64.new(0, 0x40000000)	-- 2^62
local CHANNEL_MAX, ASK, DETACH, CREDITS = 0xffef, 0xfffd, 0xfffe, 0xffff
local WRITE_LAST_IMM, WRITE_ONLY_IMM = 9, 11	-- opcodes of BTH

local reasons = {}
for number, name in ([[
	0 NONE 1 PEER_PLAIN 2 OPTION_ECHOED 3 OPTION_BAD 4 OPTION_NO_ROOM 5 OPTION_DROPPED
	6 CLIENT_PLAIN 7 NO_HELLO 8 HELLO_TIMEOUT 9 FAMILY_OFF 10 NO_NETFILTER 11 MIGRATION
	12 SOCKET_OPTION 13 CALL_RUNNING 14 SHUT_BEFORE 20 NOT_YET 21 UPGRADE_OFF
	22 PEER_NO_SERVICE 23 NO_ROUTE 24 CONNECT_FAILED 25 CONNECT_TIMEOUT 26 NO_MEMORY
	27 MR_FAILED 28 DMA_SYNC 29 XFRM_POLICY 30 SOCKET_FILTER 31 NO_SLOT 32 RING_LIMIT
	33 UNKNOWN_LINK 34 ATTACH_TIMEOUT 35 LINK_BUSY 36 NETNS 37 CLOSING 38 HALF_FRAMED
	39 DEVICE_LACKS 40 OPERATOR 41 ATTACH_LIMIT 42 GROUP_LIMIT 43 PEER_SHARE 44 USER_SHARE
	45 LINK_LIMIT 47 UPGRADING 48 CLIENT_BEGINS 49 TUNNEL 50 LINK_COMPLETION
	51 LINK_DISCONNECTED 52 LINK_DEVICE_REMOVED 53 LINK_QP_EVENT 54 LINK_PORT_DOWN
	55 LINK_ADDR_CHANGE 56 LINK_PEER_RESUME 57 LINK_DETACH_TIMEOUT 58 LINK_IDLE
	59 LINK_SHUTDOWN 60 LINK_PROTOCOL 61 LINK_OPERATOR 62 LINK_SILENT 63 LINK_UNACKED
	64 LINK_SHORT 79 SYN_TAKEN 80 RESET 81 TCP_ERROR 82 TCP_EOF 83 CLOSED_UNREAD
	84 LINGER_ZERO 85 ORPHAN_DATA 86 ORPHAN_TIMEOUT 87 PEER_ERROR 88 ORPHAN_LIMIT 89 HELLO_BAD
	90 HELLO_CUT 91 FRAME_BAD 93 DATA_OFFSET 94 WINDOW_EXCEEDED 95 DATA_AFTER_FIN 96 FIN_BAD
	97 FINACK_BAD 98 CREDIT_BAD 99 ATTACH_BAD 100 MOVE_BAD 101 RESUME_BAD
	102 MOVE_DATA]]):gmatch("(%d+) (%S+)") do
	reasons[tonumber(number)] = name
end

-- Checks of one field: each returns what is wrong, or false.
local function zero(value) return value ~= 0 and "not 0" end
local function positive(value) return value == 0 and "0" end
local function offset(value) return value > OFFSET_MAX and "above 2^62" end
local function version(value) return value ~= VERSION and "another version" end
local function one_flag(value) return value > 1 and "unknown flag" end
local function magic(value) return value ~= CM_MAGIC and "not that of AF_RDMA" end
local function is(wanted)
	return function(value) return value ~= wanted and "not " .. wanted end
end
local function ring(value)
	local size = RING_MIN
	while size < value do size = size * 2 end
	return (size ~= value or size > RING_MAX) and "no power of two from 2^14 to 2^26"
end

-- Structures on the wire. A row is a field: name, bytes, meaning, display (add_fields()), check.
local structs = {
	option = {
		{"kind", 1, "Kind", "dec"},
		{"len", 1, "Length", "bytes", is(12)},
		{"exid", 4, "Identifier of the experiment", "hex"},
		{"version", 1, "Version", "dec", version},
		{"flags", 1, "Flags", {[0] = "client's offer", "server's answer"}, one_flag},
		{"nonce", 4, "Nonce", "hex"},
	},
	hello = {
		{"magic", 8, "Magic", "raw"},
		{"proof", 8, "Proof", "hex"},
		{"length", 2, "Length of HELLO", "bytes", function(value)
			return (value < 64 or value > HELLO_MAX) and "not from 64 to 512"
		end},
		{"version", 2, "Version", "dec", version},
		{"features", 4, "Features (low byte: log2 of the send ring)", "hex"},
		{"instance", 16, "Instance of the sender", "raw"},
		{"secret", 16, "Secret to present when connecting a link", "raw"},
		{"ring", 4, "Receive ring", "bytes", ring},
		{"port", 2, "Port of the cm listener", "dec"},
		{"reserved", 2, "Reserved", "dec", zero},
	},
	frame = {
		{"type", 1, "Type", {}},
		{"flags", 1, "Flags", {[0] = "none", "optional"}, one_flag},
		{"reserved", 2, "Reserved", "dec", zero},
		{"length", 4, "Length of the body", "bytes", function(value)
			return value > BODY_MAX and "longer than any body"
		end},
	},
	offset = {
		{"offset", 8, "Offset", "bytes", offset},
	},
	attach = {
		{"epoch", 4, "Epoch", "dec", positive},
		{"reason", 4, "Reason", reasons},
		{"link", 8, "Link id", "dec"},
		{"addr", 8, "Address of the sender's receive ring", "hex"},
		{"rkey", 4, "Key of this ring", "hex"},
		{"ring", 4, "Size of this ring", "bytes"},
		{"channel", 2, "Channel id for writes to this ring", "dec"},
		{"flags", 2, "Flags", {[0] = "none", "sender connected the link"}, one_flag},
		{"span", 4, "Writable from the address on", "bytes"},
		{"consumed", 8, "Consumer cursor", "bytes", offset},
	},
	move = {
		{"epoch", 4, "Epoch", "dec", positive},
		{"reserved", 4, "Reserved", "dec", zero},
		{"start", 8, "First offset on the link", "bytes", offset},
	},
	resume = {
		{"epoch", 4, "Epoch", "dec", positive},
		{"reason", 4, "Reason", reasons},
		{"received", 8, "Received without a gap", "bytes", offset},
		{"consumed", 8, "Consumer cursor", "bytes", offset},
	},
	error = {
		{"reason", 4, "Reason", reasons},
	},
	service = {
		{"port", 2, "Port of the cm listener", "dec", positive},
		{"reserved", 2, "Reserved", "dec", zero},
	},
	cm_req = {
		{"magic", 4, "Magic", "hex", magic},
		{"version", 1, "Version", "dec", version},
		{"tclass", 1, "Traffic class", "hex"},
		{"depth", 2, "Receives posted", "dec"},
		{"instance", 16, "Instance of the sender", "raw"},
		{"secret", 16, "Secret from the receiver's HELLO", "raw"},
		{"link", 8, "Link id", "dec"},
	},
	cm_rep = {
		{"magic", 4, "Magic", "hex", magic},
		{"depth", 2, "Receives posted", "dec"},
		{"reserved", 2, "Reserved", "dec"},
		{"reason", 4, "Reason of a reject", reasons},
		{"instance", 16, "Instance of the sender", "raw"},
		{"link", 8, "Link id", "dec"},
	},
}

-- Frames by type: name, layout of the fixed body.
local frames = {
	[1] = {"DATA", "offset"},
	[2] = {"CREDIT", "offset"},
	[3] = {"ATTACH", "attach"},
	[4] = {"ATTACHED", "attach"},
	[5] = {"BLOCKED", "offset"},
	[6] = {"MOVE", "move"},
	[7] = {"RESUME", "resume"},
	[8] = {"FIN", "offset"},
	[9] = {"FINACK", "offset"},
	[10] = {"URGENT", "offset"},
	[11] = {"ERROR", "error"},
	[12] = {"URGENTACK", "offset"},
	[13] = {"SERVICE", "service"},
}
local DATA, ATTACH, ATTACHED = 1, 3, 4
for number, frame in pairs(frames) do structs.frame[1][4][number] = frame[1] end

local kinds = {[0] = "write", [1] = "cursor", [2] = "reserved", [ASK] = "ASK",
	       [DETACH] = "DETACH", [CREDITS] = "CREDITS"}
local unit = {" byte", " bytes"}
local numbers = {
	ProtoField.uint8, ProtoField.uint16, [4] = ProtoField.uint32, [8] = ProtoField.uint64,
}
local others = {
	stream = ProtoField.uint32("afrdma.stream", "tcp.stream of the connection"),
	connection = ProtoField.string("afrdma.connection", "Connection"),
	payload = ProtoField.bytes("afrdma.payload", "Bytes of the stream"),
	skipped = ProtoField.bytes("afrdma.skipped", "Bytes that the receiver skips"),
	undecoded = ProtoField.bytes("afrdma.undecoded", "Bytes that cannot be decoded"),
	link = ProtoField.uint64("afrdma.link", "Link id"),
	kind = ProtoField.uint16("afrdma.imm.kind", "Kind of message", base.HEX, kinds),
	channel = ProtoField.uint16("afrdma.imm.channel", "Channel id"),
	cursor = ProtoField.uint16("afrdma.imm.cursor", "Cursor, unit: the writer's ring / 2^14"),
	posted = ProtoField.uint16("afrdma.imm.posted", "Receives posted so far, modulo 2^16"),
	consumed = ProtoField.uint64("afrdma.imm.consumed", "Consumer cursor",
				     base.UNIT_STRING, unit),
}
local fields = {}
for _, field in pairs(others) do fields[#fields + 1] = field end

-- Give each row its ProtoField. "dec" and "hex" are numbers, "bytes" is a number of bytes, "raw"
-- are bytes; a table has names of numbers.
local function add_fields(struct, rows)
	for _, row in ipairs(rows) do
		local name, text, display = "afrdma." .. struct .. "." .. row[1], row[3], row[4]
		local number = numbers[row[2]]
		if display == "raw" then
			row.field = ProtoField.bytes(name, text)
		elseif display == "bytes" then
			row.field = number(name, text, base.UNIT_STRING, unit)
		elseif display == "hex" then
			row.field = number(name, text, base.HEX)
		else
			row.field = number(name, text, base.DEC,
					   display ~= "dec" and display or nil)
		end
		fields[#fields + 1] = row.field
	end
end
for struct, rows in pairs(structs) do
	add_fields(struct, rows)
	rows.size = 0
	for _, row in ipairs(rows) do rows.size = rows.size + row[2] end
end
afrdma.fields = fields

local malformed = ProtoExpert.new("afrdma.malformed", "Malformed", expert.group.MALFORMED,
				  expert.severity.ERROR)
afrdma.experts = {malformed}

local function complain(item, text) item:add_proto_expert_info(malformed, "AF_RDMA: " .. text) end

-- Add the fields of a structure at the beginning of @range to @tree; returns their values by name,
-- and whether no check failed.
local function dissect_struct(struct, range, tree)
	local values, good, at = {}, true, 0
	for _, row in ipairs(structs[struct]) do
		local name, size, check = row[1], row[2], row[5]
		local part = range(at, size)
		local item = tree:add(row.field, part)
		local value = row[4] == "raw" and part:bytes() or
			      size == 8 and part:uint64() or part:uint()
		local wrong = check and check(value)
		if wrong then complain(item, name .. " is " .. wrong) end
		good = good and not wrong
		values[name] = value
		at = at + size
	end
	return values, good
end

-- TCP connections by tcp.stream. A connection has a number, a name, and two tables by end_of():
-- "mode", that of the direction that the end sends ("framed" or "plain"), and "offers", its newest
-- ATTACH or ATTACHED. If SYN or SYN-ACK was seen, it has "nonce", that of the client, "client", the
-- client's end, and "plain", why it falls back to TCP.
local streams
-- what ATTACH and ATTACHED offer, by the sender's address, link id and channel id, or by the
-- sender's address and the key
local by_channel, by_key
local links		-- link ids by address and number of the queue pair
local writes		-- what is known about a write, by number of the packet

function afrdma.init()
	streams, by_channel, by_key, links, writes = {}, {}, {}, {}, {}
end

local get = {}
for name, field in pairs({
	stream = "tcp.stream", options = "tcp.options",
	syn = "tcp.flags.syn", ack = "tcp.flags.ack",
	opcode = "infiniband.bth.opcode", destqp = "infiniband.bth.destqp",
	rkey = "infiniband.reth.r_key", len = "infiniband.reth.dmalen", imm = "infiniband.immdt",
	req = "infiniband.cm.req.ip_cm.private", req_qp = "infiniband.cm.req.localqpn",
	rep = "infiniband.cm.rep.private", rep_qp = "infiniband.cm.rep.localqpn",
	rej = "infiniband.cm.rej.private",
}) do
	get[name] = Field.new(field)
end

local function key(...) return table.concat({...}, " ") end
local function end_of(address, port) return tostring(address) .. " port " .. port end

local function stream_of(pinfo)
	local number = get.stream().value
	if not streams[number] then
		local one = end_of(pinfo.src, pinfo.src_port)
		local other = end_of(pinfo.dst, pinfo.dst_port)
		streams[number] = {number = number, name = one .. " and " .. other,
				   mode = {}, offers = {}}
	end
	return streams[number]
end

local function show_stream(stream, tree)
	tree:add(others.stream, stream.number):set_generated()
	tree:add(others.connection, stream.name):set_generated()
end

-- afr_hello_proof()
local function proof(nonce, from_server)
	local mix = UInt64(nonce) * UInt64(2) + UInt64(from_server and 1 or 0)
	mix = (mix + UInt64.new(0x7b2d48f1, 0x5a3c96e1)) * UInt64.new(0x3f94c26b, 0xd6e8a715)
	mix = mix:bxor(mix:rshift(31))
	mix = mix * UInt64.new(0x7a61e305, 0x8cb92f4d)
	return mix:bxor(mix:rshift(29))
end

-- afr_tcp_option_answer()
local function answer(nonce)
	return (UInt64(nonce) * UInt64(0x6b43a9b5) + UInt64(0x1d2f3b59)):lower()
end

-- Remember what ATTACH or ATTACHED offers.
local function learn(stream, pinfo, values)
	local address, link = tostring(pinfo.src), tostring(values.link)
	local offer = {stream = stream, link = values.link, ring = values.ring,
		       consumed = values.consumed:tonumber(),
		       from = end_of(pinfo.src, pinfo.src_port),
		       to = end_of(pinfo.dst, pinfo.dst_port)}
	by_channel[key(address, link, values.channel)] = offer
	by_key[key(address, values.rkey)] = offer
	stream.offers[offer.from] = offer
end

-- What attach_ok() in frame.c checks in addition; returns what is wrong.
local function check_attach(kind, values)
	if values.reason ~= 0 then return kind == ATTACH and "ATTACH with a reason" end
	return ring(values.ring) and "ring is " .. ring(values.ring) or
	       values.channel > CHANNEL_MAX and "channel is above 0xffef" or
	       values.span ~= values.ring and values.span ~= 2 * values.ring and
			"span is neither one nor two rings" or
	       values.addr > UInt64.max() - UInt64(values.span) and "addr wraps"
end

-- Dissect one frame, which is all of @range; returns what to show in the info column.
local function dissect_frame(range, pinfo, tree, stream)
	local kind = range(0, 1):uint()
	local frame, body = frames[kind], range:len() - 8
	local name = frame and frame[1] or "type " .. kind
	local item = tree:add(afrdma, range, "AF_RDMA " .. name)
	local head = dissect_struct("frame", range, item)
	if not frame then
		if head.flags ~= 1 then complain(item, "unknown type, and not optional") end
		if body > 0 then item:add(others.skipped, range(8)) end
		return name
	end
	local fixed = structs[frame[2]].size
	if kind == DATA and body <= fixed or kind ~= DATA and body ~= fixed then
		complain(item, name .. " with a body of " .. body .. " bytes")
		if body > 0 then item:add(others.undecoded, range(8)) end
		return name .. " malformed"
	end
	local values, good = dissect_struct(frame[2], range(8), item)
	if kind == DATA then
		item:add(others.payload, range(8 + fixed))
		return ("DATA %d bytes at %s"):format(body - fixed, tostring(values.offset))
	elseif kind == ATTACH or kind == ATTACHED then
		local wrong = check_attach(kind, values)
		if wrong then
			complain(item, wrong)
		elseif good and values.reason == 0 and not pinfo.visited then
			learn(stream, pinfo, values)
		end
	end
	if values.reason and values.reason ~= 0 then
		name = name .. " " .. (reasons[values.reason] or values.reason)
	end
	return name
end

local function dissect_hello(range, tree, stream, from_server)
	local item = tree:add(afrdma, range, "AF_RDMA HELLO")
	local values = dissect_struct("hello", range, item)
	if stream.nonce and values.proof ~= proof(stream.nonce, from_server) then
		complain(item, "proof of another connection")
	end
	if range:len() > structs.hello.size then
		item:add(others.skipped, range(structs.hello.size))
	end
	return "HELLO"
end

-- Returns the bytes of the HELLO or frame at the beginning of @range, whether it is a HELLO, and
-- what is wrong with its length. Without a first value, more bytes are needed to tell.
local function size_of(range)
	local hello = range(0, 1):uint() == 0xf7
	if range:len() < (hello and 18 or 8) then return nil, hello end
	if not hello then
		local body = range(4, 4):uint()
		return 8 + body, false, body > BODY_MAX
	end
	local size = range(16, 2):uint()
	return size, true, size < structs.hello.size or size > HELLO_MAX
end

-- Find out, from its first bytes, whether a direction is framed; nil if more bytes are needed.
local function mode_of(tvb, stream, from_server)
	local bytes = tostring(tvb(0, math.min(tvb:len(), 16)):bytes()):lower()
	if bytes:sub(1, 16) ~= MAGIC:sub(1, #bytes) then
		-- a capture that began after HELLO, or not
		if stream.nonce then return "plain" end
		local known = tvb:len() >= 8 and frames[tvb(0, 1):uint()]
		return known and tvb(1, 1):uint() <= 1 and tvb(2, 2):uint() == 0 and
		       tvb(4, 4):uint() <= BODY_MAX and "framed" or "plain"
	end
	if #bytes < 32 then return nil end
	local same = not stream.nonce or tvb(8, 8):uint64() == proof(stream.nonce, from_server)
	return same and "framed" or "plain"
end

function afrdma.dissector(tvb, pinfo, root)
	if not get.stream() then return 0 end
	local stream, from = stream_of(pinfo), end_of(pinfo.src, pinfo.src_port)
	local from_server = stream.client and stream.client ~= from
	if not stream.mode[from] and not pinfo.visited then
		stream.mode[from] = mode_of(tvb, stream, from_server)
		if not stream.mode[from] and pinfo.can_desegment > 0 then
			pinfo.desegment_offset = 0
			pinfo.desegment_len = DESEGMENT_ONE_MORE_SEGMENT
			return tvb:len()
		end
	end
	if stream.mode[from] ~= "framed" then return 0 end

	pinfo.cols.protocol = "AF_RDMA"
	local tree = root:add(afrdma, tvb())
	local at, shown = 0, {}
	show_stream(stream, tree)
	while at < tvb:len() do
		local rest = tvb(at)
		local size, hello, wrong = size_of(rest)
		if wrong then
			complain(tree:add(others.undecoded, rest), "impossible length of " ..
				 (hello and "HELLO" or "a frame") .. ": " .. size .. " bytes")
			shown[#shown + 1] = "malformed"
			at = tvb:len()
		elseif size and size <= rest:len() then
			shown[#shown + 1] = hello and
				dissect_hello(rest(0, size), tree, stream, from_server) or
				not hello and dissect_frame(rest(0, size), pinfo, tree, stream)
			at = at + size
		elseif pinfo.can_desegment > 0 then
			pinfo.desegment_offset = at
			pinfo.desegment_len = size and size - rest:len() or
					      DESEGMENT_ONE_MORE_SEGMENT
			break
		else	-- the capture has no more bytes
			tree:add(others.undecoded, rest):append_text(" (cut)")
			shown[#shown + 1] = "cut"
			at = tvb:len()
		end
	end
	if #shown > 0 then
		pinfo.cols.info:append(" [" .. table.concat(shown, ", ") .. "]")
		pinfo.cols.info:fence()
	end
	return tvb:len()
end

afrdma:register_heuristic("tcp", function(tvb, pinfo, tree)
	if tvb:len() < 16 or tostring(tvb(0, 8):bytes()):lower() ~= MAGIC or not get.stream() then
		return false
	end
	pinfo.conversation = afrdma
	return afrdma.dissector(tvb, pinfo, tree) > 0
end)
-- for captures that begin after HELLO: "Decode As"
DissectorTable.get("tcp.port"):add_for_decode_as(afrdma)

-- Returns the range of the option of AF_RDMA in a list of TCP options, and whether there are two.
local function find_option(list)
	local at, found = 0, nil
	while at < list:len() do
		local kind = list(at, 1):uint()
		if kind == 0 then break end
		if kind == 1 then
			at = at + 1
		else
			local len = at + 1 < list:len() and list(at + 1, 1):uint() or 0
			if len < 2 or at + len > list:len() then break end
			if kind == KIND and len >= 6 and list(at + 2, 4):uint() == EXID then
				if found then return found, true end
				found = list(at, len)
			end
			at = at + len
		end
	end
	return found
end

-- Decode the option in a SYN or SYN-ACK; returns its values if a receiver would not ignore it.
local function dissect_option(root)
	local options = get.options()
	local range, twice = find_option(options.range)
	if not range then return nil end
	local item = root:add(afrdma, range, "AF_RDMA TCP option")
	if range:len() ~= structs.option.size then
		complain(item, "option of " .. range:len() .. " bytes")
		return nil
	end
	if twice then complain(item, "option occurs twice") end
	local values = dissect_struct("option", range, item)
	if twice or values.version ~= VERSION or values.flags > SERVER then return nil end
	return values, item
end

local function after_syn(pinfo, root)
	local values = get.options() and dissect_option(root)
	local stream = streams[get.stream().value]
	if values and values.flags == 0 then
		stream = stream_of(pinfo)
		stream.nonce = values.nonce
		stream.client = end_of(pinfo.src, pinfo.src_port)
		pinfo.cols.info:append(" [AF_RDMA offered]")
	elseif stream and stream.nonce then
		stream.plain = "a SYN without the option"
	end
end

local function after_syn_ack(pinfo, root)
	local values, item
	if get.options() then values, item = dissect_option(root) end
	local stream = streams[get.stream().value]
	if not values then
		if stream and stream.nonce then stream.plain = "no answer in the SYN-ACK" end
		return
	end
	stream = stream_of(pinfo)
	stream.client = end_of(pinfo.dst, pinfo.dst_port)
	if values.flags ~= SERVER then
		stream.plain = "the option is echoed"
	elseif stream.nonce and values.nonce ~= answer(stream.nonce) then
		complain(item, "nonce is no answer to the client's")
		stream.plain = "a wrong answer in the SYN-ACK"
	elseif not stream.plain then
		pinfo.conversation = afrdma
		pinfo.cols.info:append(" [AF_RDMA answered]")
	end
end

-- Decode the private data of the connection manager, and learn which link a queue pair belongs to.
local function after_cm(struct, data, qp, pinfo, root)
	local range = data.range
	if range:len() < structs[struct].size or range(0, 4):uint() ~= CM_MAGIC then return end
	local item = root:add(afrdma, range(0, structs[struct].size), "AF_RDMA private data")
	local values = dissect_struct(struct, range, item)
	pinfo.cols.info:append(" [AF_RDMA link " .. tostring(values.link) .. "]")
	if qp and not pinfo.visited then
		links[key(tostring(pinfo.net_src), qp.value)] = values.link
	end
end

-- Find the link and connection of a write, and how far its writer has read.
local function look_up(link, address, channel, cursor)
	local offer = link and by_channel[key(address, tostring(link), channel)]
	local write = {link = link, stream = offer and offer.stream, from = offer and offer.to,
		       to = offer and offer.from}
	local own = offer and offer.stream.offers[offer.to]	-- the writer's ring
	if own and own.link == link and cursor then
		local unit_size = math.max(1, own.ring / 2 ^ 14)
		local units = math.floor(own.consumed / unit_size)
		own.consumed = (units + (cursor - units) % 65536) * unit_size
		write.consumed = own.consumed
	end
	return write
end

local function after_write(imm, pinfo, root)
	local range, address = imm.range, tostring(pinfo.net_dst)
	local high, low = range(0, 2):uint(), range(2, 2):uint()
	local len = get.len()
	local is_write = high <= CHANNEL_MAX
	local kind = is_write and (len and len.value == 0 and 1 or 0) or high
	if not kinds[kind] then kind = 2 end
	local channel = is_write and high or kind == DETACH and low or nil
	if not writes[pinfo.number] then
		writes[pinfo.number] = look_up(links[key(address, get.destqp().value)], address,
					       channel, is_write and low)
	end
	local write = writes[pinfo.number]
	local item = root:add(afrdma, range, "AF_RDMA immediate")
	if not write.link then item:append_text(", if the queue pair is that of a link") end
	item:add(others.kind, range(0, 2), kind)
	if channel then item:add(others.channel, range(is_write and 0 or 2, 2)) end
	if is_write then item:add(others.cursor, range(2, 2)) end
	if kind == ASK or kind == CREDITS then item:add(others.posted, range(2, 2)) end
	if write.consumed then
		item:add(others.consumed, range(2, 2), UInt64(write.consumed)):set_generated()
	end
	if write.link then
		item:add(others.link, range, write.link):set_generated()
		pinfo.cols.protocol = "AF_RDMA"
	end
	local text = kinds[kind] .. (channel and " channel " .. channel or "")
	if write.stream then
		show_stream(write.stream, item)
		text = ("%s of tcp.stream %d, from %s to %s"):format(text, write.stream.number,
								     write.from, write.to)
	end
	if write.link then pinfo.cols.info:append(" [" .. text .. "]") end
end

-- Without the private data of the connection manager, the key in RETH tells the link.
local function after_reth(pinfo)
	local address = tostring(pinfo.net_dst)
	local pair = key(address, get.destqp().value)
	local offer = by_key[key(address, get.rkey().value)]
	if offer and not links[pair] then links[pair] = offer.link end
end

function after.dissector(_, pinfo, root)
	if get.stream() then
		local stream = streams[get.stream().value]
		if get.syn().value then
			(get.ack().value and after_syn_ack or after_syn)(pinfo, root)
		elseif stream then
			local from = end_of(pinfo.src, pinfo.src_port)
			local plain = stream.plain or stream.mode[from] == "plain" and "no HELLO"
			if plain then
				pinfo.cols.info:append(" [AF_RDMA: plain TCP, " .. plain .. "]")
			end
		end
	elseif get.opcode() then
		if get.req() then after_cm("cm_req", get.req(), get.req_qp(), pinfo, root) end
		if get.rep() then after_cm("cm_rep", get.rep(), get.rep_qp(), pinfo, root) end
		if get.rej() then after_cm("cm_rep", get.rej(), nil, pinfo, root) end
		if get.rkey() and not pinfo.visited then after_reth(pinfo) end
		local opcode = get.opcode().value
		if get.imm() and (opcode == WRITE_LAST_IMM or opcode == WRITE_ONLY_IMM) then
			after_write(get.imm(), pinfo, root)
		end
	end
end
register_postdissector(after)
-- A listener that wants all fields: so they exist, as "get" needs, even when a packet is dissected
-- for the first time and nothing is shown, as when Wireshark opens a file. "tshark -2" ignores
-- that, unless it has a filter.
local listener = Listener.new("frame", nil, true)
function listener.packet() end
