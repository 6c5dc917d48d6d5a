"""Sixty pairs of an answer and a reference, written by hand: thirty answers say the same in other words, thirty contradict it."""

from __future__ import annotations

FACTS: tuple[tuple[str, str, str, str], ...] = (
    ("When does the library close on Fridays?", "The library closes at 6 p.m. on Fridays.", "On Fridays it shuts its doors at six in the evening.", "On Fridays it stays open until 9 p.m."),
    ("Who approves travel above 500 euros?", "Travel above 500 euros is approved by the head of department.", "The department head has to sign off any trip that costs more than 500 euros.", "Any trip above 500 euros is approved by the travel agency alone."),
    ("How long is the warranty?", "The warranty lasts two years from the day of purchase.", "You are covered for 24 months after you buy it.", "The warranty ends six months after the purchase."),
    ("Can the filter be washed?", "The filter must not be washed; replace it every three months.", "Do not wash the filter, put in a new one each quarter.", "Yes, wash the filter with warm water and use it again."),
    ("Where do we meet?", "We meet at the main entrance of the station.", "The meeting point is the front door of the station.", "We meet at the bus stop behind the museum."),
    ("Is the trail open to bicycles?", "Bicycles are not allowed on the trail.", "You cannot ride a bike on the trail.", "Cyclists are welcome on the whole trail."),
    ("What is the boiling point of water at sea level?", "At sea level water boils at 100 degrees Celsius.", "It boils at 212 degrees Fahrenheit, which is 100 degrees Celsius.", "At sea level it boils at 80 degrees Celsius."),
    ("Who wrote the report?", "The report was written by Dr. Amara Osei.", "Its author is Amara Osei.", "Its author is Jonas Keller."),
    ("How many tablets may an adult take a day?", "An adult may take at most four tablets a day.", "Adults should not take more than four tablets within 24 hours.", "Adults can take up to ten tablets a day."),
    ("Does the plan include international calls?", "International calls are not part of the plan and cost extra.", "No, calls abroad are charged separately.", "Yes, calls to every country are included."),
    ("Why was the match cancelled?", "The match was cancelled because of heavy rain.", "It was called off as it rained too hard.", "It was cancelled because the referee was ill."),
    ("Which door leads to the lab?", "The green door at the end of the corridor leads to the lab.", "Go to the end of the hallway and take the green door to get to the lab.", "The red door next to the lift leads to the lab."),
    ("When was the bridge built?", "The bridge was built in 1932.", "Its construction dates from 1932.", "It was built in 1975."),
    ("Is the soup vegetarian?", "The soup contains chicken stock, so it is not vegetarian.", "It is made with chicken broth and is unsuitable for vegetarians.", "The soup has no meat products at all, so it is vegetarian."),
    ("How do I reset the router?", "Hold the reset button for ten seconds until the light blinks.", "Press and keep the reset key down for about ten seconds, until the lamp flashes.", "Unplug the antenna and wait for a day."),
    ("Who pays for the return shipping?", "The customer pays for the return shipping.", "Sending an item back is at the buyer's own expense.", "The shop pays for the return shipping."),
    ("Which planet is the largest?", "Jupiter is the largest planet of the solar system.", "No planet in our solar system is bigger than Jupiter.", "Saturn is larger than every other planet."),
    ("Are dogs allowed in the cabin?", "Dogs under eight kilograms are allowed in the cabin.", "You may bring a dog on board if it weighs less than 8 kg.", "No dogs of any size are allowed in the cabin."),
    ("What happens if I pay late?", "A late payment adds a fee of five percent.", "Paying after the due date costs five percent more.", "Nothing happens: late payments are free of charge."),
    ("How deep is the lake?", "The lake is 45 meters deep at its deepest point.", "Its greatest depth is 45 m.", "It is never deeper than 3 meters."),
    ("Did the board accept the budget?", "The board rejected the budget by seven votes to two.", "With seven votes against and two in favour, the budget was turned down.", "The board accepted the budget without a vote against it."),
    ("What does the red light mean?", "The red light means that the battery is almost empty.", "When it glows red, the battery is running low.", "The red light means that the battery is full."),
    ("Is the museum free for students?", "Students enter the museum for free with a valid card.", "With a student card you pay no admission.", "Students pay the same price as everybody else."),
    ("Which language is spoken in Brazil?", "Portuguese is the official language of Brazil.", "Brazilians officially speak Portuguese.", "The official language of Brazil is Spanish."),
    ("How often is the backup made?", "A backup is made every night at 2 a.m.", "The data is backed up nightly, at two o'clock.", "A backup is made once a year."),
    ("Can I change my seat?", "Seats can be changed until one hour before departure.", "You may pick another seat up to 60 minutes before you leave.", "Seats cannot be changed after booking."),
    ("Who won the election?", "Maria Lindqvist won the election with 54 percent.", "With 54 percent of the votes, the winner was Maria Lindqvist.", "Maria Lindqvist lost the election to Per Dahl."),
    ("Is the water safe to drink?", "The tap water is safe to drink.", "You can drink water from the tap without any risk.", "Tap water has to be boiled, as it makes people ill."),
    ("What is the minimum age?", "Participants must be at least sixteen years old.", "Nobody under 16 may take part.", "Children from the age of six may take part."),
    ("Where is the spare key?", "The spare key is in the blue box under the stairs.", "Look in the blue box below the staircase for the spare key.", "The neighbor has the only spare key."),
)  # fmt: skip
"""Questions with a reference, an answer that says the same, and an answer that contradicts it."""

EXAMPLES: tuple[tuple[str, str, str, str], ...] = (
    ("When does the shop open?", "The shop opens at nine.", "It opens at 9 a.m.", "yes"),
    ("When does the shop open?", "The shop opens at nine.", "It opens at noon.", "no"),
    ("Is parking free?", "Parking costs two euros an hour.", "No, you pay 2 euros per hour.", "yes"),
    ("Is parking free?", "Parking costs two euros an hour.", "Yes, you can park for free.", "no"),
)
"""Judged examples for the prompt: question, reference, output, answer. Their facts do not occur in the pairs."""


def pairs() -> list[tuple[str, str, str, bool]]:
    """Return question, reference, output, and whether the output says the same as the reference."""
    return [
        (question, reference, output, is_same)
        for question, reference, same, other in FACTS
        for output, is_same in ((same, True), (other, False))
    ]
