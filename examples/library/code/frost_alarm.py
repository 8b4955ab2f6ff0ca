"""Frost alarm for the greenhouse: sends one message when it gets too cold, and one when it is warm again.

Runs every five minutes from cron on the cupboard computer. The sensor is a DS18B20 at plant height.
"""

import json
import pathlib
import subprocess
import sys

ALARM_BELOW = 3.0  # degrees Celsius; the thermostat holds 6, so 3 means that the heater has failed
ALL_CLEAR_ABOVE = 5.0  # a gap between the two, or the alarm would ring all night around one value
SENSOR = pathlib.Path("/sys/bus/w1/devices/28-0316a2795bff/w1_slave")
STATE = pathlib.Path("/var/lib/orchard/frost.json")
RECIPIENTS = ("samir", "ruth")


def read_temperature(raw: str) -> float:
    """Degrees Celsius out of the two lines that the kernel prints for the sensor."""
    check, reading = raw.strip().splitlines()
    if not check.endswith("YES"):
        raise ValueError("the sensor's checksum does not match; is the plug wet again?")
    return int(reading.rpartition("t=")[2]) / 1000


def next_state(alarmed: bool, degrees: float) -> bool:
    """Whether the alarm is on, given whether it was on before."""
    if alarmed:
        return degrees <= ALL_CLEAR_ABOVE
    return degrees < ALARM_BELOW


def notify(text: str) -> None:
    for name in RECIPIENTS:
        subprocess.run(["send-message", name, text], check=True)


def main() -> None:
    degrees = read_temperature(SENSOR.read_text())
    before = json.loads(STATE.read_text())["alarmed"] if STATE.exists() else False
    now = next_state(before, degrees)
    if now != before:
        word = "FROST ALARM" if now else "All clear"
        notify(f"{word}: the greenhouse is at {degrees:.1f} degrees")
    STATE.write_text(json.dumps({"alarmed": now, "degrees": degrees}))


if __name__ == "__main__":
    sys.exit(main())
