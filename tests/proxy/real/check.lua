-- check.lua - for wrk: each answer must be a 200 with the bytes of a file. Usage: wrk ... -s check.lua URL -- FILE
local threads = {}

function setup(thread)
    table.insert(threads, thread)
end

function init(arguments)
    local file = assert(io.open(arguments[1], "rb"))
    wanted = file:read("*a")
    file:close()
    right, wrong = 0, 0
end

function response(status, headers, body)
    if status == 200 and body == wanted then
        right = right + 1
    else
        wrong = wrong + 1
    end
end

function done(summary, latency, requests)
    local sum = {right = 0, wrong = 0}
    for _, thread in ipairs(threads) do
        sum.right = sum.right + thread:get("right")
        sum.wrong = sum.wrong + thread:get("wrong")
    end
    local errors = summary.errors
    print(string.format("right %d wrong %d errors %d", sum.right, sum.wrong,
        errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
